//! Seeds of texts, and of ranges with values to use them on.

use backplane_types::{ArrayValues, ByteString, UaString, Variant};

use super::Seed;
use super::values::{arrays, scalars};
use super::wire::encode;

pub(super) fn texts() -> Vec<Seed> {
    const TEXTS: &[(&str, &str)] = &[
        ("empty", ""),
        ("numeric", "i=85"),
        ("numeric-largest", "ns=65535;i=4294967295"),
        ("numeric-too-large", "ns=65536;i=4294967296"),
        ("numeric-plus", "ns=+1;i=+2"),
        ("numeric-minus", "i=-1"),
        ("namespace-zero", "ns=0;i=1"),
        ("string", "ns=2;s=Channel1.Device1.Tag1"),
        ("string-with-signs", "ns=2;s=a;b=c;nsu=d%3B"),
        ("string-empty", "s="),
        ("guid", "ns=1;g=C496578A-0DFE-4B8F-870A-745238C6AEAE"),
        ("guid-alone", "c496578a-0dfe-4b8f-870a-745238c6aeae"),
        ("guid-broken", "g=C496578A-0DFE-4B8F-870A-745238C6AEA"),
        ("guid-with-wide-letter", "g=C496578A-0DFE-4B8F-870A-745238C6Aäf"),
        ("opaque", "ns=3;b=M/RbKBsRVkePCePcx24oRA=="),
        ("opaque-padding", "b=Zh=="),
        ("opaque-broken", "b=Z==="),
        ("expanded", "svr=1;nsu=http://test.org/UA/Data/;i=1234"),
        ("expanded-escaped", "nsu=a%3Bb%25c%3b;s=d;e"),
        ("expanded-empty-uri", "nsu=;i=5"),
        ("expanded-both", "svr=4294967295;ns=7;s=x"),
        ("expanded-half", "svr=1"),
        ("half-escape", "nsu=%;i=1"),
        ("range-one", "5"),
        ("range-two", "1:2"),
        ("range-matrix", "0:1,3,7:9"),
        ("range-equal", "2:2"),
        ("range-backwards", "3:1"),
        ("range-huge", "4294967295:99999999999999999999"),
        ("range-zeros", "000000000000000000000000000001:00000000000000000000002"),
        ("range-comma", "1,"),
        ("range-colon", "1:"),
        (
            "range-many",
            "0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0",
        ),
        (
            "range-too-many",
            "0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0",
        ),
        ("arabic-digits", "i=١٢"),
    ];
    let mut all: Vec<Seed> = TEXTS
        .iter()
        .map(|(name, text)| Seed::new(*name, text.as_bytes()))
        .collect();
    all.push(Seed::new("utf8-invalid", b"s=\xFF\xC3\x28"));
    all
}

pub(super) fn ranges() -> Vec<Seed> {
    let with = |name: String, range: &str, value: &Variant, other: &Variant| {
        let text = [range.as_bytes(), b"\n"].concat();
        Seed::new(name, [text, encode(value), encode(other)].concat())
    };
    let mut all = Vec::new();
    for (name, value) in arrays() {
        all.push(with(format!("first-{name}"), "0", &value, &value));
        all.push(with(format!("end-{name}"), "1:9", &value, &Variant::Empty));
    }
    for (name, value) in scalars() {
        if matches!(value, Variant::String(_) | Variant::ByteString(_) | Variant::Int32(_)) {
            all.push(with(format!("part-{name}"), "0:1", &value, &value));
        }
    }
    let texts = Variant::from(ArrayValues::String(["abc", "ä€😀", ""].map(UaString::from).to_vec()));
    let parts = Variant::from(ArrayValues::String(["x", "y"].map(UaString::from).to_vec()));
    all.push(with("parts-of-strings".into(), "0:1,1", &texts, &parts));
    let strings = [&[1, 2, 3][..], &[4]].map(ByteString::from).to_vec();
    let strings = Variant::from(ArrayValues::ByteString(strings));
    all.push(with("parts-of-byte-strings".into(), "0:1,0:2", &strings, &strings));
    for (name, matrix) in arrays().into_iter().filter(|(name, _)| name.starts_with("matrix")) {
        for (place, range) in ["0,0", "1,1:2", "0:1,0", "0:2,0,0:1", "2,0,1", "0:2,0:0,0:1", "0,0,0,0"]
            .iter()
            .enumerate()
        {
            all.push(with(format!("block-{place}-{name}"), range, &matrix, &matrix));
        }
    }
    all.push(with(
        "single-element".into(),
        "1",
        &Variant::from(ArrayValues::Int32(vec![1, 2])),
        &Variant::Int32(7),
    ));
    all.push(with(
        "text-of-wide-letters".into(),
        "1:2",
        &Variant::from("ä€😀"),
        &Variant::from("ab"),
    ));
    all
}
