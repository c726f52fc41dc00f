//! Where clauses: a ContentFilter read, checked and put in the order of evaluation (Part 4, 7.7).
//!
//! Elements refer to each other by index and must not go round in circles; what the first one does not lead to is ignored, but checked all
//! the same. It must not know queues or items.

use std::borrow::Cow;

use backplane_types::{
    ContentFilter, ContentFilterElement, ContentFilterElementResult, ContentFilterResult, ElementOperand,
    ExtensionObject, FilterOperator, LiteralOperand, SimpleAttributeOperand, StatusCode, Structure, Variant,
};

use super::event::Event;
use super::filter::FilterLimits;
use super::like::Pattern;
use super::operators::evaluate;
use super::select::Selection;
use super::types::EventTypes;
use super::work::{arrays, work};

/// A checked where clause.
#[derive(Debug, Clone, Default)]
pub(crate) struct WhereClause {
    /// Operands come before the elements that use them; the last element decides. None: everything passes.
    elements: Vec<Element>,
}

/// One operator with its operands.
#[derive(Debug, Clone)]
pub(super) struct Element {
    pub(super) operator: FilterOperator,
    pub(super) operands: Vec<Operand>,
    /// The pattern of a Like, when it is a literal.
    pub(super) pattern: Option<Pattern>,
}

/// Where an operator gets a value from.
#[derive(Debug, Clone)]
pub(super) enum Operand {
    Literal(Variant),
    Field(Selection),
    /// The result of another element: its index, or its place in the order of evaluation once that is known.
    Element(usize),
}

impl WhereClause {
    /// Checks a where clause. The result has one entry for each element, and is empty when nothing is wrong.
    ///
    /// # Errors
    /// The results, of which at least one is bad.
    pub(crate) fn new(
        filter: ContentFilter,
        types: &dyn EventTypes,
        limits: &FilterLimits,
    ) -> Result<Self, ContentFilterResult> {
        let count = filter.elements.len();
        let mut elements = Vec::with_capacity(count);
        let mut element_results = Vec::with_capacity(count);
        for element in filter.elements {
            let (element, result) = read(element, count, types, limits);
            elements.push(element);
            element_results.push(result);
        }
        if element_results.iter().all(|result| result.status_code.is_good()) {
            match in_order(&elements) {
                Ok(order) => return Ok(Self::arranged(&elements, &order)),
                Err(circle) => {
                    if let Some(result) = element_results.get_mut(circle) {
                        result.status_code = StatusCode::BAD_FILTER_ELEMENT_INVALID;
                    }
                }
            }
        }
        Err(ContentFilterResult {
            element_results,
            element_diagnostic_infos: Vec::new(),
        })
    }

    fn arranged(elements: &[Element], order: &[usize]) -> Self {
        let place = |index: usize| order.iter().position(|it| *it == index).unwrap_or(usize::MAX);
        let arrange = |index: &usize| {
            let mut element = elements.get(*index)?.clone();
            for operand in &mut element.operands {
                if let Operand::Element(index) = operand {
                    *index = place(*index);
                }
            }
            Some(element)
        };
        Self {
            elements: order.iter().filter_map(arrange).collect(),
        }
    }

    /// Steps of deciding about one event.
    pub(crate) fn work(&self) -> u64 {
        work(&self.elements)
    }

    /// Bytes of the arrays in it.
    pub(crate) fn arrays(&self) -> u64 {
        arrays(&self.elements)
    }

    /// Whether an event passes: the filter is TRUE for it, neither FALSE nor NULL.
    pub(crate) fn passes(&self, event: &Event) -> bool {
        if self.elements.is_empty() {
            return true;
        }
        let mut values: Vec<Cow<'_, Variant>> = Vec::with_capacity(self.elements.len());
        for element in &self.elements {
            let value = evaluate(element, event, &values);
            values.push(value);
        }
        matches!(values.last().map(AsRef::as_ref), Some(Variant::Boolean(true)))
    }
}

/// Fewest and most operands of an operator; `None` when there is no such operator.
fn operand_count(operator: FilterOperator) -> Option<(usize, usize)> {
    Some(match operator {
        FilterOperator::IS_NULL | FilterOperator::NOT | FilterOperator::OF_TYPE | FilterOperator::IN_VIEW => (1, 1),
        FilterOperator::EQUALS
        | FilterOperator::GREATER_THAN
        | FilterOperator::LESS_THAN
        | FilterOperator::GREATER_THAN_OR_EQUAL
        | FilterOperator::LESS_THAN_OR_EQUAL
        | FilterOperator::LIKE
        | FilterOperator::AND
        | FilterOperator::OR
        | FilterOperator::CAST
        | FilterOperator::BITWISE_AND
        | FilterOperator::BITWISE_OR => (2, 2),
        FilterOperator::BETWEEN => (3, 3),
        FilterOperator::IN_LIST => (2, usize::MAX),
        FilterOperator::RELATED_TO => (6, 6),
        _ => return None,
    })
}

fn read(
    element: ContentFilterElement,
    count: usize,
    types: &dyn EventTypes,
    limits: &FilterLimits,
) -> (Element, ContentFilterElementResult) {
    let operator = element.filter_operator;
    let given = element.filter_operands.len();
    let mut result = ContentFilterElementResult::default();
    let mut read = Element {
        operator,
        operands: Vec::new(),
        pattern: None,
    };
    result.status_code = match operand_count(operator) {
        None => StatusCode::BAD_FILTER_OPERATOR_INVALID,
        Some(_) if matches!(operator, FilterOperator::IN_VIEW | FilterOperator::RELATED_TO) => {
            StatusCode::BAD_FILTER_OPERATOR_UNSUPPORTED
        }
        Some((fewest, most)) if given < fewest || given > most.min(limits.max_where_operands) => {
            StatusCode::BAD_FILTER_OPERAND_COUNT_MISMATCH
        }
        Some(_) => StatusCode::GOOD,
    };
    if result.status_code.is_bad() {
        return (read, result);
    }
    let mut statuses = Vec::with_capacity(given);
    for operand in &element.filter_operands {
        match read_operand(operand, count, types) {
            Ok(operand) => {
                read.operands.push(operand);
                statuses.push(StatusCode::GOOD);
            }
            Err(status) => statuses.push(status),
        }
    }
    if operator == FilterOperator::LIKE
        && let Some(Operand::Literal(literal)) = read.operands.get(1)
    {
        read.pattern = literal.as_str().and_then(Pattern::parse);
        if read.pattern.is_none()
            && let Some(status) = statuses.get_mut(1)
        {
            *status = StatusCode::BAD_FILTER_LITERAL_INVALID;
        }
    }
    if statuses.iter().any(|status| status.is_bad()) {
        result.status_code = StatusCode::BAD_FILTER_OPERAND_INVALID;
        result.operand_status_codes = statuses;
    }
    (read, result)
}

fn read_operand(operand: &ExtensionObject, count: usize, types: &dyn EventTypes) -> Result<Operand, StatusCode> {
    let invalid = |_| StatusCode::BAD_FILTER_OPERAND_INVALID;
    match operand.type_id.as_standard() {
        Some(LiteralOperand::ENCODING_ID) => {
            let literal: LiteralOperand = operand.decode_as().map_err(invalid)?;
            Ok(Operand::Literal(literal.value))
        }
        Some(ElementOperand::ENCODING_ID) => {
            let element: ElementOperand = operand.decode_as().map_err(invalid)?;
            let index = usize::try_from(element.index).unwrap_or(usize::MAX);
            if index < count {
                Ok(Operand::Element(index))
            } else {
                Err(StatusCode::BAD_FILTER_ELEMENT_INVALID)
            }
        }
        Some(SimpleAttributeOperand::ENCODING_ID) => {
            let field: SimpleAttributeOperand = operand.decode_as().map_err(invalid)?;
            Selection::new(field, types).map(Operand::Field)
        }
        // AttributeOperands are not for event filters.
        _ => Err(StatusCode::BAD_FILTER_OPERAND_INVALID),
    }
}

/// What the first element leads to, operands first.
///
/// # Errors
/// The index of an element that leads back to itself.
fn in_order(elements: &[Element]) -> Result<Vec<usize>, usize> {
    #[derive(Clone, Copy, PartialEq)]
    enum Seen {
        No,
        Open,
        Done,
    }
    let mut seen = vec![Seen::No; elements.len()];
    let mut order = Vec::with_capacity(elements.len());
    // Elements on the way from the first one, each with the number of operands that were followed.
    let mut way = Vec::new();
    if let Some(first) = seen.first_mut() {
        *first = Seen::Open;
        way.push((0, 0));
    }
    while let Some((index, followed)) = way.last_mut() {
        let operand = elements.get(*index).and_then(|it| it.operands.get(*followed));
        *followed += 1;
        match operand {
            Some(Operand::Element(next)) => match seen.get_mut(*next) {
                Some(Seen::Open) => return Err(*next),
                Some(seen) if *seen == Seen::No => {
                    *seen = Seen::Open;
                    way.push((*next, 0));
                }
                _ => {}
            },
            Some(_) => {}
            None => {
                let index = *index;
                if let Some(seen) = seen.get_mut(index) {
                    *seen = Seen::Done;
                }
                order.push(index);
                way.pop();
            }
        }
    }
    Ok(order)
}
