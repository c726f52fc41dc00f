//! An EventFilter as an item uses it (Part 4, 7.22.3): which events it wants, and which of their fields.

use backplane_types::{
    ContentFilterResult, Encoder, EventFilter, EventFilterResult, ExtensionBody, ExtensionObject, StatusCode, Variant,
};

use super::content::WhereClause;
use super::event::Event;
use super::select::Selection;
use super::types::EventTypes;

/// Bytes in memory for one of the encoded filter, arrays apart: short names and values take more than they are long.
const IN_MEMORY: u64 = 4;

/// Limits of event filters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FilterLimits {
    /// Most select clauses (MaxSelectClauseParameters): `BadEventFilterInvalid` with more.
    pub max_select_clauses: usize,
    /// Most elements of a where clause (MaxWhereClauseParameters): `BadEventFilterInvalid` with more.
    pub max_where_elements: usize,
    /// Most operands of one element, which only InList may have many of: `BadFilterOperandCountMismatch` with more.
    pub max_where_operands: usize,
    /// Most bytes of the encoded filter, which an item keeps and walks through for every event: `BadEventFilterInvalid` with more.
    pub max_bytes: usize,
    /// Most steps of deciding about one event, as far as the literals of the filter say: `BadEventFilterInvalid` with more. One comparison is
    /// a few, a pattern takes one for each of its characters and each of the text's.
    pub max_work: u64,
    /// Most bytes of all filters of a session: `BadTooManyMonitoredItems` above it.
    pub max_session_bytes: u64,
    /// Most steps of all filters of a session for one event: `BadTooManyMonitoredItems` above it.
    pub max_session_work: u64,
}

impl Default for FilterLimits {
    fn default() -> Self {
        Self {
            max_select_clauses: 500,
            max_where_elements: 100,
            max_where_operands: 1_000,
            max_bytes: 64 << 10,
            max_work: 200_000,
            max_session_bytes: 64 << 20,
            max_session_work: 4_000_000,
        }
    }
}

/// A checked filter.
#[derive(Debug, Clone)]
pub(crate) struct Filter {
    /// A clause that was refused gives null.
    select: Vec<Option<Selection>>,
    condition: WhereClause,
    /// Steps of deciding about one event.
    pub(crate) work: u64,
    /// Bytes of it in memory, more or less.
    pub(crate) bytes: u64,
}

/// A filter was refused: the status of the item and the filterResult that says why.
#[derive(Debug)]
pub(crate) struct Refused {
    pub(crate) status: StatusCode,
    pub(crate) result: ExtensionObject,
}

impl From<StatusCode> for Refused {
    fn from(status: StatusCode) -> Self {
        Self {
            status,
            result: ExtensionObject::NULL,
        }
    }
}

impl Filter {
    /// Checks a filter. A select clause that is wrong is reported in the result and gives null in every event; the others do their work. A
    /// where clause that is wrong refuses the filter: nobody can say which events it would let through.
    ///
    /// # Errors
    /// `BadEventFilterInvalid` (cannot be decoded, too long, no select clause, too many clauses, no select clause that is right, a wrong where clause).
    pub(crate) fn new(
        filter: &ExtensionObject,
        types: &dyn EventTypes,
        limits: &FilterLimits,
    ) -> Result<(Self, ExtensionObject), Refused> {
        let invalid = StatusCode::BAD_EVENT_FILTER_INVALID;
        let length = match &filter.body {
            ExtensionBody::Binary(bytes) => bytes.bytes().len(),
            _ => 0,
        };
        if length > limits.max_bytes {
            return Err(invalid.into());
        }
        let filter: EventFilter = filter.decode_as().map_err(|_| invalid)?;
        let elements = filter.where_clause.elements.len();
        if filter.select_clauses.is_empty()
            || filter.select_clauses.len() > limits.max_select_clauses
            || elements > limits.max_where_elements
        {
            return Err(invalid.into());
        }
        let clauses = filter.select_clauses.into_iter();
        let select: Vec<_> = clauses.map(|operand| Selection::new(operand, types)).collect();
        let select_clause_results: Vec<StatusCode> = select
            .iter()
            .map(|it| it.as_ref().err().copied().unwrap_or(StatusCode::GOOD))
            .collect();
        let none_right = select.iter().all(Result::is_err);
        let any_wrong = select.iter().any(Result::is_err);
        let condition = WhereClause::new(filter.where_clause, types, limits);
        let result = |where_clause_result| {
            ExtensionObject::from_structure(&EventFilterResult {
                select_clause_results: if any_wrong { select_clause_results } else { Vec::new() },
                select_clause_diagnostic_infos: Vec::new(),
                where_clause_result,
            })
        };
        match condition {
            Ok(condition) if condition.work() > limits.max_work => Err(invalid.into()),
            Ok(condition) if !none_right => {
                let filter = Self {
                    work: condition.work(),
                    bytes: u64::try_from(length)
                        .unwrap_or(u64::MAX)
                        .saturating_mul(IN_MEMORY)
                        .saturating_add(condition.arrays()),
                    select: select.into_iter().map(Result::ok).collect(),
                    condition,
                };
                let right = ExtensionObject::NULL;
                Ok((
                    filter,
                    if any_wrong {
                        result(ContentFilterResult::default())
                    } else {
                        right
                    },
                ))
            }
            condition => Err(Refused {
                status: invalid,
                result: result(condition.err().unwrap_or_default()),
            }),
        }
    }

    /// Whether the item wants an event.
    pub(crate) fn passes(&self, event: &Event) -> bool {
        self.condition.passes(event)
    }

    /// Writes the fields of an event, as many as there are select clauses.
    pub(crate) fn encode(&self, event: &Event, e: &mut Encoder<'_>) {
        e.length(self.select.len());
        for selection in &self.select {
            match selection {
                Some(selection) => e.put(selection.of(event).as_ref()),
                None => e.put(&Variant::Empty),
            }
        }
    }

    /// Writes a status in place of every field, when the fields are longer than a message may be.
    pub(crate) fn encode_status(&self, status: StatusCode, e: &mut Encoder<'_>) {
        e.length(self.select.len());
        for _ in &self.select {
            e.put(&Variant::StatusCode(status));
        }
    }
}
