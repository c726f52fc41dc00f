//! The worked examples that come with Part 13, if the file is there: every row has to be reproduced, value, timestamp, status and
//! information bits, but for those in `examples_exceptions`, which must not be.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use backplane_aggregates::{
    CALCULATED, Function, INFO_TYPE_DATA_VALUE, INTERPOLATED, MULTIPLE_VALUES, PARTIAL, Settings, annotation_counts,
    process,
};
use backplane_types::{AggregateConfiguration, DataValue, DateTime, StatusCode, Variant};

use crate::examples_exceptions::EXCEPTIONS;

/// 12:00:00 of the file, on some day.
pub(crate) const NOON: i64 = 132_000_000_000_000_000;
const TICKS: i64 = 10_000_000;

fn file() -> Option<PathBuf> {
    let name = "AggregateExamples.csv";
    let folder = match std::env::var_os("BACKPLANE_SCHEMAS") {
        Some(folder) => PathBuf::from(folder),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/schemas"),
    };
    Some(folder.join(name)).filter(|path| path.is_file())
}

#[derive(Debug, Default, Clone)]
struct Table {
    function: String,
    historian: String,
    interval: f64,
    stepped: bool,
    configuration: AggregateConfiguration,
    rows: Vec<[String; 3]>,
}

fn fields(line: &str) -> Vec<String> {
    let mut quoted = false;
    let mut fields = vec![String::new()];
    for c in line.trim().chars() {
        match c {
            '"' => quoted = !quoted,
            ',' if !quoted => fields.push(String::new()),
            c => fields.last_mut().unwrap().push(c),
        }
    }
    fields.iter().map(|field| field.trim().to_owned()).collect()
}

/// All tables of the file; those without a function hold raw data.
fn tables(text: &str) -> Vec<Table> {
    let mut tables: Vec<Table> = Vec::new();
    let mut function = String::new();
    for line in text.lines() {
        let fields = fields(line);
        let value = || fields[1].clone();
        match fields[0].as_str() {
            "Aggregate" => function = value(),
            name if name.starts_with("Historian") => tables.push(Table {
                function: function.clone(),
                historian: name.to_owned(),
                ..Table::default()
            }),
            key => {
                let Some(table) = tables.last_mut() else { continue };
                match key {
                    "Processing Interval" => table.interval = value().parse().unwrap(),
                    "Stepped" => table.stepped = value() == "true",
                    "Treat Uncertain as Bad" => table.configuration.treat_uncertain_as_bad = value() == "true",
                    "Percent Bad" => table.configuration.percent_data_bad = value().parse().unwrap(),
                    "Percent Good" => table.configuration.percent_data_good = value().parse().unwrap(),
                    "Use Sloped Extrapolation" => table.configuration.use_sloped_extrapolation = value() == "true",
                    time if time.starts_with("12:") => {
                        table.rows.push([time.to_owned(), fields[1].clone(), fields[2].clone()]);
                    }
                    _ => {}
                }
            }
        }
    }
    tables
}

fn time(text: &str) -> DateTime {
    let mut parts = text.split(':').map(|part| part.parse::<f64>().unwrap());
    let (hours, minutes, seconds) = (parts.next().unwrap(), parts.next().unwrap(), parts.next().unwrap());
    let milliseconds = ((hours - 12.0) * 3_600_000.0 + minutes * 60_000.0 + seconds * 1000.0).round();
    #[allow(clippy::cast_possible_truncation)]
    let ticks = milliseconds as i64 * TICKS / 1000;
    DateTime::from_ticks(NOON + ticks)
}

fn status(text: &str) -> StatusCode {
    let mut bits = 0;
    let mut code = StatusCode::GOOD;
    for part in text.split(',').map(str::trim) {
        match part {
            "Good" => {}
            "Uncertain" => code = StatusCode::UNCERTAIN,
            "UncertainDataSubNormal" => code = StatusCode::UNCERTAIN_DATA_SUB_NORMAL,
            "Bad" => code = StatusCode::BAD,
            "BadNoData" => code = StatusCode::BAD_NO_DATA,
            "Calculated" => bits |= CALCULATED,
            "Interpolated" => bits |= INTERPOLATED,
            "Partial" => bits |= PARTIAL,
            "MultipleValues" => bits |= MULTIPLE_VALUES,
            other => panic!("{other} is no status of the file"),
        }
    }
    StatusCode(code.0 | if bits == 0 { 0 } else { INFO_TYPE_DATA_VALUE | bits })
}

/// The raw values of a historian. Its first row says when the archive was made, and is no value.
fn raw(table: &Table) -> Vec<DataValue> {
    let row = |[at, value, status_text]: &[String; 3]| DataValue {
        value: match value.as_str() {
            "" | "undefined" => Variant::Empty,
            "true" => Variant::Boolean(true),
            "false" => Variant::Boolean(false),
            number => Variant::Double(number.parse().unwrap()),
        },
        status: Some(status(status_text)),
        source_timestamp: Some(time(at)),
        ..DataValue::default()
    };
    table.rows.iter().skip(1).map(row).collect()
}

fn results(table: &Table, raw: &[DataValue]) -> Vec<DataValue> {
    let start = DateTime::from_ticks(NOON);
    #[allow(clippy::cast_possible_truncation)]
    let length = table.interval as i64 * i64::try_from(table.rows.len()).unwrap() * (TICKS / 1000);
    let end = DateTime::from_ticks(NOON + length);
    let function = *Function::ALL.iter().find(|it| it.name() == table.function).unwrap();
    if function == Function::AnnotationCount {
        // The file counts one annotation for each raw value.
        let times: Vec<DateTime> = raw.iter().filter_map(|value| value.source_timestamp).collect();
        let ends = times.first().copied().zip(times.last().copied());
        return annotation_counts(start, end, table.interval, &times, ends).unwrap();
    }
    let settings = Settings {
        function,
        configuration: table.configuration.clone(),
        stepped: table.stepped,
    };
    process(&settings, start, end, table.interval, raw).unwrap()
}

fn same_value(expected: &str, actual: &Variant) -> bool {
    match actual {
        Variant::Empty => expected.is_empty(),
        Variant::StatusCode(code) => !expected.is_empty() && status(expected) == *code,
        Variant::Boolean(value) => expected == value.to_string(),
        number => {
            let (Ok(expected), Some(actual)) = (expected.parse::<f64>(), number.as_f64()) else {
                return false;
            };
            // Three decimals are printed, sometimes four.
            (expected - actual).abs() < 0.000_51
        }
    }
}

#[test]
fn worked_examples_of_part_13() {
    let Some(path) = file() else {
        println!("skipped: no AggregateExamples.csv; set BACKPLANE_SCHEMAS to the folder that has it");
        return;
    };
    let text = std::fs::read_to_string(path).unwrap();
    let tables = tables(&text);
    let historians: HashMap<&str, Vec<DataValue>> = tables
        .iter()
        .filter(|table| table.function.is_empty())
        .map(|table| (table.historian.as_str(), raw(table)))
        .collect();
    assert_eq!(historians.len(), 5);
    let mut excepted: HashMap<(String, String, String), bool> = HashMap::new();
    for rows in EXCEPTIONS.iter().flat_map(|(_, rows)| *rows) {
        for at in rows.2 {
            let key = (rows.0.to_owned(), rows.1.to_owned(), (*at).to_owned());
            assert!(
                excepted.insert(key, false).is_none(),
                "{} {} {at} is listed twice",
                rows.0,
                rows.1
            );
        }
    }
    let (mut compared, mut wrong) = (0, Vec::new());
    for table in tables.iter().filter(|table| !table.function.is_empty()) {
        let results = results(table, &historians[table.historian.as_str()]);
        assert_eq!(results.len(), table.rows.len());
        for ([at, value, code], actual) in table.rows.iter().zip(results) {
            compared += 1;
            let same = actual.source_timestamp == Some(time(at))
                && actual.status() == status(code)
                && same_value(value, &actual.value);
            let short = at.strip_prefix("12:").unwrap().strip_suffix(".000").unwrap_or(at);
            let key = (table.function.clone(), table.historian.clone(), short.to_owned());
            let listed = excepted.get_mut(&key);
            let is_listed = listed.is_some();
            if let Some(met) = listed {
                *met = true;
            }
            if same == is_listed {
                wrong.push(format!(
                    "{} {} {at}: {value} {code} in the file, computed {:?} {:?} at {:?}{}",
                    table.function,
                    table.historian,
                    actual.value,
                    actual.status(),
                    actual.source_timestamp,
                    if is_listed {
                        "; listed as an exception but the same"
                    } else {
                        ""
                    }
                ));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {compared} rows:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    assert!(compared > 1200, "only {compared} rows found");
    let unmet: Vec<_> = excepted.iter().filter(|(_, met)| !**met).collect();
    assert!(
        unmet.is_empty(),
        "exceptions for rows that are not in the file: {unmet:?}"
    );
}
