//! Text forms: node ids, expanded node ids, Guids and numeric ranges.
//!
//! Input: text in UTF-8; anything else is read with its bad bytes replaced.

use std::fmt::{Debug, Display};
use std::str::FromStr;

use backplane_types::{
    ExpandedNodeId, Guid, MAX_RANGE_DIMENSIONS, NodeId, NumericRange, NumericRangeError, QualifiedName, StatusCode,
};

use crate::check::bounded;
use crate::feedback::note;

/// Parsing accepts or refuses; what it accepts, written out and parsed again, is the same.
pub fn text(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    parse::<NodeId>(&text);
    parse::<ExpandedNodeId>(&text);
    parse::<Guid>(&text);
    let range = parse::<NumericRange>(&text);
    let parameter = NumericRange::parse(&text);
    match range {
        Some(range) => {
            assert!((1..=MAX_RANGE_DIMENSIONS).contains(&range.dimensions().len()));
            assert!(range.dimensions().iter().all(|bounds| bounds.low <= bounds.high));
            assert_eq!(parameter, Ok(Some(range)));
        }
        None if text.is_empty() => assert_eq!(parameter, Ok(None)),
        None => {
            let status = text.parse::<NumericRange>().map_err(StatusCode::from).map(Some);
            assert_eq!(parameter, status);
            assert!(matches!(
                text.parse::<NumericRange>(),
                Err(NumericRangeError::Syntax | NumericRangeError::NoData)
            ));
        }
    }
    // Only written, never parsed.
    let _ = QualifiedName::new(1, text.as_ref()).to_string();
}

fn parse<T: FromStr + Display + PartialEq + Debug>(text: &str) -> Option<T> {
    let parsed = bounded(text.len(), || text.parse::<T>().ok());
    note(parsed.is_some());
    if let Some(value) = &parsed {
        let written = value.to_string();
        note(written.len());
        let again = written.parse::<T>().ok();
        assert_eq!(again.as_ref(), Some(value), "{text:?} was written as {written:?}");
    }
    parsed
}
