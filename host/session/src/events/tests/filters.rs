//! Filters that are wrong in one place or another: what is refused, what is reported, and what works all the same.

use super::super::filter::{Filter, FilterLimits};
use super::*;
use backplane_types::{
    AttributeOperand, BinaryDecode, ContentFilterResult, DecodeLimits, Decoder, Encoder, EventFilterResult, StatusCode,
};

fn check(filter: &ExtensionObject) -> (Result<Filter, StatusCode>, Option<EventFilterResult>) {
    let (filter, result) = match Filter::new(filter, &Types, &FilterLimits::default()) {
        Ok((filter, result)) => (Ok(filter), result),
        Err(refused) => (Err(refused.status), refused.result),
    };
    let result = (!result.is_null()).then(|| result.decode_as().unwrap());
    (filter, result)
}

fn fields(filter: &Filter, event: &Event) -> Vec<Variant> {
    let mut out = Vec::new();
    filter.encode(event, &mut Encoder::new(&mut out));
    Vec::<Variant>::decode(&mut Decoder::new(&out, DecodeLimits::default())).unwrap()
}

/// The symptom: one select clause that the server does not know silences the whole item.
#[test]
fn a_wrong_select_clause_is_reported_and_gives_null() {
    let mut index_range = operand(BASE, &[(0, "Message")]);
    index_range.index_range = UaString::from("x");
    let mut attribute = operand(BASE, &[(0, "Message")]);
    attribute.attribute_id = AttributeId::DISPLAY_NAME.0;
    let clauses = [
        (operand(BASE, &[(0, "Severity")]), StatusCode::GOOD),
        (operand(BASE, &[(0, "Nonsense")]), StatusCode::BAD_NODE_ID_UNKNOWN),
        (
            operand(NodeId::numeric(9, 9), &[(0, "Severity")]),
            StatusCode::BAD_TYPE_DEFINITION_INVALID,
        ),
        (operand(BASE, &[(0, "")]), StatusCode::BAD_BROWSE_NAME_INVALID),
        (index_range, StatusCode::BAD_INDEX_RANGE_INVALID),
        (attribute, StatusCode::BAD_ATTRIBUTE_ID_INVALID),
        (operand(BASE, &[]), StatusCode::BAD_ATTRIBUTE_ID_INVALID),
        (operand(SYSTEM, &[(2, "Level")]), StatusCode::BAD_NODE_ID_UNKNOWN),
        (operand(BASE, &[(2, "Level")]), StatusCode::GOOD),
    ];
    let (select, expected): (Vec<_>, Vec<_>) = clauses.into_iter().unzip();
    let (filter, result) = check(&event_filter(select, Vec::new()));
    let result = result.unwrap();
    assert_eq!(result.select_clause_results, expected);
    assert_eq!(result.where_clause_result, ContentFilterResult::default());
    let values = fields(&filter.unwrap(), &event(4.5));
    assert_eq!(values.len(), expected.len());
    assert_eq!(
        (&values[0], &values[1], &values[8]),
        (&Variant::UInt16(500), &Variant::Empty, &Variant::Double(4.5))
    );
}

/// The symptom: a field of a subtype is null for clients that name BaseEventType, or for those that name the subtype.
#[test]
fn a_field_is_found_by_the_base_type_and_by_the_real_one() {
    let select = vec![
        operand(BASE, &[(2, "Level")]),
        operand(LEVEL, &[(2, "Level")]),
        operand(NodeId::NULL, &[(2, "Level")]),
        operand(SYSTEM, &[(0, "SourceName")]),
    ];
    let (filter, result) = check(&event_filter(select, Vec::new()));
    assert_eq!(result, None);
    let filter = filter.unwrap();
    let level = Variant::Double(4.5);
    assert_eq!(
        fields(&filter, &event(4.5)),
        [level.clone(), level.clone(), level, "Tank".into()]
    );
    let base = EventBuilder::new([BASE], NodeId::numeric(2, 1), "Tank").build(vec![1], now().utc);
    assert_eq!(
        fields(&filter, &base),
        vec![Variant::Empty; 4],
        "an event of the base type is no SystemEvent"
    );
}

#[test]
fn an_index_range_cuts_a_field() {
    let mut levels = operand(BASE, &[(2, "Levels")]);
    levels.index_range = UaString::from("1:2");
    let filter = check(&event_filter(vec![levels], Vec::new())).0.unwrap();
    let with = |values: Vec<i32>| {
        let path = vec![QualifiedName::new(2, "Levels")];
        level_event(1.0).path(path, values.into()).build(vec![1], now().utc)
    };
    assert_eq!(fields(&filter, &with(vec![1, 2, 3])), [Variant::from(vec![2, 3])]);
    assert_eq!(
        fields(&filter, &with(vec![1])),
        [Variant::StatusCode(StatusCode::BAD_INDEX_RANGE_NO_DATA)]
    );
}

fn where_error(elements: Vec<(FilterOperator, Vec<ExtensionObject>)>) -> ContentFilterResult {
    let (filter, result) = check(&event_filter(vec![operand(BASE, &[(0, "EventId")])], elements));
    assert_eq!(filter.err(), Some(StatusCode::BAD_EVENT_FILTER_INVALID));
    let result = result.unwrap();
    assert!(result.select_clause_results.is_empty(), "nothing is wrong with those");
    result.where_clause_result
}

/// The symptoms: a where element without operands is dereferenced; elements that go round in circles are followed for ever.
#[test]
fn wrong_where_clauses_are_refused_and_say_where() {
    use FilterOperator as O;
    let attribute = ExtensionObject::from_structure(&AttributeOperand::default());
    let mut broken = literal(1);
    broken.body = backplane_types::ExtensionBody::Binary((&[200_u8]).into());
    let operand_invalid = StatusCode::BAD_FILTER_OPERAND_INVALID;
    let count = StatusCode::BAD_FILTER_OPERAND_COUNT_MISMATCH;
    for (operator, operands, status, operand_status) in [
        (O::EQUALS, vec![], count, None),
        (O::IS_NULL, vec![], count, None),
        (O::EQUALS, vec![literal(1)], count, None),
        (O::EQUALS, vec![literal(1), literal(1), literal(1)], count, None),
        (O::IN_LIST, vec![literal(1)], count, None),
        (O::IN_LIST, vec![literal(1); 1_001], count, None),
        (O(99), vec![literal(1)], StatusCode::BAD_FILTER_OPERATOR_INVALID, None),
        (O(-1), vec![], StatusCode::BAD_FILTER_OPERATOR_INVALID, None),
        (
            O::IN_VIEW,
            vec![literal(1)],
            StatusCode::BAD_FILTER_OPERATOR_UNSUPPORTED,
            None,
        ),
        (O::RELATED_TO, vec![], StatusCode::BAD_FILTER_OPERATOR_UNSUPPORTED, None),
        (
            O::NOT,
            vec![element(7)],
            operand_invalid,
            Some(StatusCode::BAD_FILTER_ELEMENT_INVALID),
        ),
        (O::NOT, vec![attribute], operand_invalid, Some(operand_invalid)),
        (O::NOT, vec![broken], operand_invalid, Some(operand_invalid)),
        (
            O::NOT,
            vec![ExtensionObject::NULL],
            operand_invalid,
            Some(operand_invalid),
        ),
        (
            O::NOT,
            vec![field(&[(0, "Nonsense")])],
            operand_invalid,
            Some(StatusCode::BAD_NODE_ID_UNKNOWN),
        ),
        (O::NOT, vec![element(1)], StatusCode::GOOD, None),
        (O::NOT, vec![element(0)], StatusCode::BAD_FILTER_ELEMENT_INVALID, None),
    ] {
        let shown = format!("{operator:?} {operands:?}");
        let good = (O::IS_NULL, vec![literal(1)]);
        if status.is_good() {
            // Elements 1 and 2 use each other.
            let circle = vec![
                (operator, operands),
                (O::NOT, vec![element(2)]),
                (O::NOT, vec![element(1)]),
            ];
            let results = where_error(circle).element_results;
            assert_eq!(results[1].status_code, StatusCode::BAD_FILTER_ELEMENT_INVALID);
            continue;
        }
        let results = where_error(vec![(operator, operands), good]).element_results;
        assert_eq!(results.len(), 2);
        assert_eq!(results[0].status_code, status, "{shown}");
        assert_eq!(
            results[0].operand_status_codes.first().copied(),
            operand_status,
            "{shown}"
        );
        assert_eq!(results[1].status_code, StatusCode::GOOD);
    }
    let like = vec![(O::LIKE, vec![field(&[(0, "SourceName")]), literal("[a")])];
    let results = where_error(like).element_results;
    assert_eq!(
        results[0].operand_status_codes,
        [StatusCode::GOOD, StatusCode::BAD_FILTER_LITERAL_INVALID]
    );
}

#[test]
fn elements_may_share_and_those_that_lead_nowhere_are_ignored() {
    use FilterOperator as O;
    let elements = vec![
        (O::AND, vec![element(3), element(3)]),
        (O::NOT, vec![element(0)]),
        (O::EQUALS, vec![literal(1), literal(2)]),
        (O::GREATER_THAN, vec![field(&[(2, "Level")]), literal(10)]),
    ];
    let filter = check(&event_filter(vec![operand(BASE, &[(0, "EventId")])], elements))
        .0
        .unwrap();
    assert!(filter.passes(&event(11.0)));
    assert!(!filter.passes(&event(9.0)));
    assert!(!filter.passes(&event(Variant::Empty)), "NULL does not pass");
}

#[test]
fn filters_have_limits() {
    let limits = FilterLimits {
        max_select_clauses: 2,
        max_where_elements: 2,
        max_where_operands: 3,
        ..FilterLimits::default()
    };
    let clause = || operand(BASE, &[(0, "EventId")]);
    let test = || (FilterOperator::IS_NULL, vec![literal(1)]);
    let new = |clauses, tests| {
        let filter = event_filter(vec![clause(); clauses], vec![test(); tests]);
        Filter::new(&filter, &Types, &limits).err().map(|it| it.status)
    };
    let invalid = Some(StatusCode::BAD_EVENT_FILTER_INVALID);
    assert_eq!(
        (new(2, 2), new(3, 0), new(1, 3), new(0, 0)),
        (None, invalid, invalid, invalid)
    );
    let nothing_known = event_filter(vec![operand(BASE, &[(0, "Nonsense")])], Vec::new());
    assert_eq!(check(&nothing_known).0.err(), invalid);
}

/// What costs every event for as long as the item lives is bounded by what a filter may say.
#[test]
fn a_filter_that_is_too_long_is_refused() {
    let of_length = |length: usize| {
        let text = "a".repeat(length);
        let elements = vec![(FilterOperator::EQUALS, vec![field(&[(0, "Message")]), literal(text)])];
        check(&event_filter(vec![operand(BASE, &[(0, "EventId")])], elements)).0
    };
    let most = FilterLimits::default().max_bytes;
    assert!(of_length(most - 500).is_ok());
    assert_eq!(of_length(most).err(), Some(StatusCode::BAD_EVENT_FILTER_INVALID));
}

/// The status of a filter with this where clause.
fn refused(elements: Vec<(FilterOperator, Vec<ExtensionObject>)>) -> Option<StatusCode> {
    check(&event_filter(vec![operand(BASE, &[(0, "EventId")])], elements))
        .0
        .err()
}

/// A long literal that is used often, in every way there is; and clauses of ordinary literals, however many.
#[test]
fn a_filter_that_works_too_long_is_refused() {
    let invalid = Some(StatusCode::BAD_EVENT_FILTER_INVALID);
    let text = || literal("a".repeat(20_000));
    let many = |first, others: usize| {
        let operands: Vec<_> = std::iter::once(first).chain((0..others).map(|_| element(1))).collect();
        (FilterOperator::IN_LIST, operands)
    };
    let cast = |value, to| (FilterOperator::CAST, vec![value, literal(NodeId::standard(to))]);
    assert_eq!(refused(vec![many(text(), 999), cast(text(), 12)]), invalid);
    let array = || literal(vec![1_i16; 10_000]);
    assert_eq!(refused(vec![many(array(), 999), cast(array(), 4)]), invalid);
    let like = |value| (FilterOperator::LIKE, vec![value, literal("%a".repeat(100))]);
    assert_eq!(refused(vec![like(text())]), invalid);
    let message = || field(&[(0, "Message")]);
    assert_eq!(refused(vec![many(message(), 999), cast(literal("a"), 12)]), None);
    // As many elements as there may be, each a pattern of ten characters, and a tree of Or above them.
    let mut elements: Vec<_> = (0..49)
        .map(|index| (FilterOperator::OR, vec![element(2 * index + 1), element(2 * index + 2)]))
        .collect();
    elements.extend((0..50).map(|_| (FilterOperator::LIKE, vec![message(), literal("%[Pp]ump 1_%")])));
    assert_eq!(refused(elements), None);
}

/// A hundred elements that each make texts of a large array: neither time nor memory for that.
#[test]
fn large_arrays_are_not_converted() {
    let cast = |length: usize| {
        let flags = literal(vec![true; length]);
        let text = || literal(NodeId::standard(12));
        let elements = vec![
            (FilterOperator::IS_NULL, vec![element(1)]),
            (FilterOperator::CAST, vec![flags, text()]),
        ];
        let filter = check(&event_filter(vec![operand(BASE, &[(0, "EventId")])], elements)).0;
        filter.unwrap().passes(&event(1))
    };
    assert!(!cast(1_000));
    assert!(cast(1_001), "there is no such value");
}
