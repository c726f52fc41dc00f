use super::{NumericRange, NumericRangeError};
use crate::{Array, ArrayValues, ByteString, StatusCode, UaString, Variant};

fn range(text: &str) -> NumericRange {
    text.parse().unwrap()
}

fn matrix(values: Vec<i32>, dimensions: &[u32]) -> Variant {
    Variant::from(Array::matrix(ArrayValues::from(values), dimensions.to_vec()).unwrap())
}

fn texts(values: &[&str]) -> Variant {
    Variant::from(values.iter().map(|text| UaString::from(*text)).collect::<Vec<_>>())
}

#[test]
fn syntax() {
    for good in ["5", "0", "1:2", "0:1,0:1", "3,4:5,6", "0:4294967295"] {
        assert_eq!(range(good).to_string(), good);
    }
    for bad in [
        "a",
        "1:",
        ":1",
        "5:5",
        "7:5",
        "1:2:3",
        "1,",
        ",1",
        "-1",
        "+1",
        " 1",
        "1 ",
        "1:2,,3",
        "１",
        "00:0",
        "99999999999999999999:99999999999999999998",
    ] {
        assert_eq!(bad.parse::<NumericRange>(), Err(NumericRangeError::Syntax), "{bad}");
        assert_eq!(NumericRange::parse(bad), Err(StatusCode::BAD_INDEX_RANGE_INVALID));
    }
    assert_eq!(NumericRange::parse(""), Ok(None));
    assert_eq!(
        range("99999999999999999998:99999999999999999999").to_string(),
        "4294967295"
    );
    assert_eq!(
        vec!["0"; 33].join(",").parse::<NumericRange>(),
        Err(NumericRangeError::NoData)
    );
}

#[test]
fn reads_arrays() {
    let array = Variant::from(vec![10_i32, 11, 12, 13]);
    assert_eq!(range("2").read(&array), Ok(Variant::from(vec![12_i32])));
    assert_eq!(range("1:2").read(&array), Ok(Variant::from(vec![11_i32, 12])));
    assert_eq!(range("3:9").read(&array), Ok(Variant::from(vec![13_i32])));
    let no_data = Err(StatusCode::BAD_INDEX_RANGE_NO_DATA);
    assert_eq!(range("4").read(&array), no_data);
    assert_eq!(range("4:5").read(&array), no_data);
    assert_eq!(range("99999999999").read(&array), no_data);
    assert_eq!(range("0,0").read(&array), no_data);
    assert_eq!(range("0").read(&Variant::from(1_i32)), no_data);
    assert_eq!(range("0").read(&Variant::Empty), no_data);
    assert_eq!(range("0").read(&Variant::from(Vec::<i32>::new())), no_data);
}

#[test]
fn reads_matrices() {
    let square = matrix((0..16).collect(), &[4, 4]);
    assert_eq!(range("1:2,0:1").read(&square), Ok(matrix(vec![4, 5, 8, 9], &[2, 2])));
    assert_eq!(range("1,1").read(&square), Ok(matrix(vec![5], &[1, 1])));
    assert_eq!(range("3:9,2:9").read(&square), Ok(matrix(vec![14, 15], &[1, 2])));
    assert_eq!(range("1").read(&square), Err(StatusCode::BAD_INDEX_RANGE_NO_DATA));
    assert_eq!(range("0,4").read(&square), Err(StatusCode::BAD_INDEX_RANGE_NO_DATA));
    let cube = matrix((0..24).collect(), &[2, 3, 4]);
    assert_eq!(
        range("0:1,1:2,3").read(&cube),
        Ok(matrix(vec![7, 11, 19, 23], &[2, 2, 1]))
    );
}

#[test]
fn reads_text_by_characters() {
    let text = Variant::from("grün");
    assert_eq!(range("2:3").read(&text), Ok(Variant::from("ün")));
    assert_eq!(range("3:8").read(&text), Ok(Variant::from("n")));
    assert_eq!(range("4").read(&text), Err(StatusCode::BAD_INDEX_RANGE_NO_DATA));
    let bytes = Variant::from(ByteString::from(&[1, 2, 3]));
    assert_eq!(range("1:2").read(&bytes), Ok(Variant::from(ByteString::from(&[2, 3]))));
    assert_eq!(
        range("0").read(&Variant::from(UaString::NULL)),
        Err(StatusCode::BAD_INDEX_RANGE_NO_DATA)
    );
    let list = texts(&["abc", "d", "efg"]);
    assert_eq!(range("0:1,1:2").read(&list), Ok(texts(&["bc", ""])));
    assert_eq!(range("1,1").read(&list), Err(StatusCode::BAD_INDEX_RANGE_NO_DATA));
}

#[test]
fn writes_arrays() {
    let mut array = Variant::from(vec![0_i32, 1, 2, 3]);
    range("1:2").write(&mut array, &Variant::from(vec![8_i32, 9])).unwrap();
    assert_eq!(array, Variant::from(vec![0_i32, 8, 9, 3]));
    range("0").write(&mut array, &Variant::from(vec![5_i32])).unwrap();
    range("3").write(&mut array, &Variant::from(6_i32)).unwrap();
    assert_eq!(array, Variant::from(vec![5_i32, 8, 9, 6]));
    let before = array.clone();
    for (text, value, status) in [
        (
            "1:2",
            Variant::from(vec![1_i32]),
            StatusCode::BAD_INDEX_RANGE_DATA_MISMATCH,
        ),
        ("1:2", Variant::from(1_i32), StatusCode::BAD_INDEX_RANGE_DATA_MISMATCH),
        ("1:2", Variant::from(vec![1_u32, 2]), StatusCode::BAD_TYPE_MISMATCH),
        ("1", Variant::from(1.0), StatusCode::BAD_TYPE_MISMATCH),
        (
            "3:4",
            Variant::from(vec![1_i32, 2]),
            StatusCode::BAD_INDEX_RANGE_NO_DATA,
        ),
        ("4", Variant::from(vec![1_i32]), StatusCode::BAD_INDEX_RANGE_NO_DATA),
        ("0,0", Variant::from(vec![1_i32]), StatusCode::BAD_INDEX_RANGE_NO_DATA),
    ] {
        assert_eq!(range(text).write(&mut array, &value), Err(status), "{text}");
        assert_eq!(array, before);
    }
}

#[test]
fn writes_matrices_and_text() {
    let mut square = matrix((0..9).collect(), &[3, 3]);
    range("1:2,0:1")
        .write(&mut square, &matrix(vec![40, 41, 42, 43], &[2, 2]))
        .unwrap();
    assert_eq!(square, matrix(vec![0, 1, 2, 40, 41, 5, 42, 43, 8], &[3, 3]));
    range("0,0").write(&mut square, &Variant::from(7_i32)).unwrap();
    let flat = Variant::from(vec![1_i32, 2, 3, 4]);
    assert_eq!(
        range("1:2,0:1").write(&mut square, &flat),
        Err(StatusCode::BAD_INDEX_RANGE_DATA_MISMATCH)
    );
    let mut text = Variant::from("grün");
    range("2").write(&mut text, &Variant::from("u")).unwrap();
    assert_eq!(text, Variant::from("grun"));
    assert_eq!(
        range("2").write(&mut text, &Variant::from("ue")),
        Err(StatusCode::BAD_INDEX_RANGE_DATA_MISMATCH)
    );
    let mut bytes = Variant::from(ByteString::from(&[1, 2, 3]));
    range("1:2")
        .write(&mut bytes, &Variant::from(ByteString::from(&[8, 9])))
        .unwrap();
    assert_eq!(bytes, Variant::from(ByteString::from(&[1, 8, 9])));
    let mut list = texts(&["abc", "def"]);
    range("0:1,1").write(&mut list, &texts(&["X", "Y"])).unwrap();
    assert_eq!(list, texts(&["aXc", "dYf"]));
    let mut any = Variant::from(vec![Variant::from(1_i32), Variant::from("x")]);
    range("1").write(&mut any, &Variant::from(2.5)).unwrap();
    assert_eq!(any, Variant::from(vec![Variant::from(1_i32), Variant::from(2.5)]));
}
