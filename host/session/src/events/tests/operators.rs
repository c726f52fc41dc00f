//! Every operator against a table, and the logic against a model that knows nothing of types.

use super::super::content::WhereClause;
use super::super::filter::FilterLimits;
use super::*;
use backplane_types::{ExpandedNodeId, Guid, LocalizedText, StatusCode};

const NULL: Variant = Variant::Empty;

/// The value of one operator over literals: a where clause that compares it with TRUE, with FALSE and asks whether it is null.
fn truth(operator: FilterOperator, operands: &[Variant]) -> Option<bool> {
    let first = || (operator, operands.iter().cloned().map(literal).collect::<Vec<_>>());
    let passes = |elements| {
        let clause = WhereClause::new(content(elements), &Types, &FilterLimits::default()).unwrap();
        clause.passes(&event(1.0))
    };
    if passes(vec![first()]) {
        return Some(true);
    }
    let negated = passes(vec![(FilterOperator::NOT, vec![element(1)]), first()]);
    let null = passes(vec![(FilterOperator::IS_NULL, vec![element(1)]), first()]);
    assert_ne!(negated, null, "{operator:?} {operands:?}");
    negated.then_some(false)
}

fn id(number: u32) -> Variant {
    NodeId::standard(number).into()
}

#[test]
fn comparisons() {
    use FilterOperator as O;
    let guid: Guid = "72962B91-FA75-4AE6-8D28-B404DC7DAF63".parse().unwrap();
    for (operator, operands, expected) in [
        (O::EQUALS, vec![1.into(), 1.0.into()], Some(true)),
        (O::EQUALS, vec![1.into(), 2_u8.into()], Some(false)),
        (O::EQUALS, vec!["1".into(), 1_u8.into()], Some(true)),
        (O::EQUALS, vec!["one".into(), 1_u8.into()], Some(false)),
        (O::EQUALS, vec!["a".into(), "A".into()], Some(false)),
        (O::EQUALS, vec![true.into(), "true".into()], Some(true)),
        (O::EQUALS, vec![true.into(), 1_i16.into()], Some(true)),
        (O::EQUALS, vec![guid.into(), guid.to_string().into()], Some(true)),
        (
            O::EQUALS,
            vec![LocalizedText::new("en", "x").into(), "x".into()],
            Some(true),
        ),
        (
            O::EQUALS,
            vec![QualifiedName::new(3, "x").into(), LocalizedText::plain("x").into()],
            Some(true),
        ),
        (
            O::EQUALS,
            vec![id(5), ExpandedNodeId::from(NodeId::standard(5)).into()],
            Some(true),
        ),
        (O::EQUALS, vec![id(5), "i=5".into()], Some(true)),
        (O::EQUALS, vec![id(5), 5.into()], Some(false)),
        (
            O::EQUALS,
            vec![now().utc.into(), now().utc.to_string().into()],
            Some(false),
        ),
        (O::EQUALS, vec![NULL, 1.into()], None),
        (O::EQUALS, vec![vec![1, 2].into(), vec![1, 2].into()], Some(true)),
        (O::EQUALS, vec![vec![1].into(), 1.into()], Some(true)),
        (O::EQUALS, vec![vec![1, 2].into(), 1.into()], Some(false)),
        (O::EQUALS, vec![f64::NAN.into(), f64::NAN.into()], Some(false)),
        (O::EQUALS, vec![u64::MAX.into(), (-1_i64).into()], Some(false)),
        (O::EQUALS, vec![StatusCode(5).into(), 5_u32.into()], Some(true)),
        (O::GREATER_THAN, vec![2.into(), 1.5.into()], Some(true)),
        (O::GREATER_THAN, vec![1.into(), 1.into()], Some(false)),
        (O::GREATER_THAN, vec!["b".into(), "a".into()], Some(true)),
        (O::GREATER_THAN, vec![id(2), id(1)], Some(false)),
        (O::GREATER_THAN, vec![u64::MAX.into(), i64::MAX.into()], Some(false)),
        (O::GREATER_THAN, vec![f64::NAN.into(), 1.into()], Some(false)),
        (O::LESS_THAN, vec![(-1_i8).into(), 1_u64.into()], Some(false)),
        (
            O::LESS_THAN,
            vec![now().utc.into(), DateTime::from_ticks(i64::MAX).into()],
            Some(true),
        ),
        (O::GREATER_THAN_OR_EQUAL, vec![1.into(), 1.into()], Some(true)),
        (O::LESS_THAN_OR_EQUAL, vec![2.into(), 1.into()], Some(false)),
        (O::LESS_THAN_OR_EQUAL, vec![2.into(), NULL], None),
        (O::BETWEEN, vec![2.into(), 1.into(), 3.into()], Some(true)),
        (O::BETWEEN, vec![4.into(), 1.into(), 3.into()], Some(false)),
        (O::BETWEEN, vec![4.into(), NULL, 3.into()], Some(false)),
        (O::BETWEEN, vec![2.into(), NULL, 3.into()], None),
        (O::IN_LIST, vec![2.into(), 1.into(), "2".into()], Some(true)),
        (O::IN_LIST, vec![2.into(), 1.into(), 3.into()], Some(false)),
        (O::IN_LIST, vec![2.into(), NULL, 3.into()], None),
        (O::IN_LIST, vec![2.into(), NULL, 2.into()], Some(true)),
        (O::IS_NULL, vec![NULL], Some(true)),
        (O::IS_NULL, vec![UaString::NULL.into()], Some(true)),
        (O::IS_NULL, vec!["".into()], Some(false)),
        (O::IS_NULL, vec![StatusCode::BAD_NOT_READABLE.into()], Some(true)),
        (O::LIKE, vec!["Boiler 7".into(), "Boiler [0-9]".into()], Some(true)),
        (
            O::LIKE,
            vec![LocalizedText::plain("Boiler").into(), "B%".into()],
            Some(true),
        ),
        (O::LIKE, vec![7.into(), "7".into()], Some(false)),
        (O::LIKE, vec![NULL, "%".into()], Some(false)),
        (O::OF_TYPE, vec![BASE.into()], Some(true)),
        (O::OF_TYPE, vec![SYSTEM.into()], Some(true)),
        (O::OF_TYPE, vec![ExpandedNodeId::from(LEVEL).into()], Some(true)),
        (O::OF_TYPE, vec![id(2052)], Some(false)),
        (O::OF_TYPE, vec!["i=2041".into()], Some(false)),
    ] {
        assert_eq!(truth(operator, &operands), expected, "{operator:?} {operands:?}");
    }
}

/// What an operator makes, shown by comparing it.
fn makes(operator: FilterOperator, operands: Vec<Variant>, expected: Variant) -> bool {
    let test = match expected {
        Variant::Empty => (FilterOperator::IS_NULL, vec![element(1)]),
        expected => (FilterOperator::EQUALS, vec![element(1), literal(expected)]),
    };
    let made = (operator, operands.into_iter().map(literal).collect());
    let clause = WhereClause::new(content(vec![test, made]), &Types, &FilterLimits::default()).unwrap();
    clause.passes(&event(1.0))
}

#[test]
fn casts() {
    let time = DateTime::from_ticks(133_000_000_000_000_000);
    for (value, data_type, expected) in [
        ("12".into(), 6, 12.into()),
        ("12.5".into(), 11, 12.5.into()),
        (12.5.into(), 6, 13.into()),
        ((-12.5).into(), 6, (-12).into()),
        (300.into(), 3, NULL),
        ((-1).into(), 7, NULL),
        (f64::NAN.into(), 6, NULL),
        (1e300.into(), 10, NULL),
        (1.into(), 12, "1".into()),
        (1.5.into(), 12, "1.5".into()),
        (true.into(), 12, "true".into()),
        ("2".into(), 1, NULL),
        ("0".into(), 1, false.into()),
        (time.to_string().into(), 13, time.into()),
        ("i=7".into(), 17, id(7)),
        ("x".into(), 20, QualifiedName::from("x").into()),
        (0x8001_0000_u32.into(), 19, StatusCode(0x8001_0000).into()),
        (StatusCode(0x8001_0000).into(), 5, NULL),
        (0x8001_u16.into(), 19, StatusCode(0x8001_0000).into()),
        (vec![1, 2].into(), 11, vec![1.0, 2.0].into()),
        (vec![1, 300].into(), 3, NULL),
        (1.into(), 13, NULL),
        (1.into(), 9999, NULL),
    ] {
        let shown = format!("{value:?} as i={data_type}");
        assert!(
            makes(FilterOperator::CAST, vec![value, id(data_type)], expected),
            "{shown}"
        );
    }
    assert!(
        makes(FilterOperator::CAST, vec![1.into(), "i=6".into()], NULL),
        "a type is a NodeId"
    );
}

#[test]
fn bits() {
    use FilterOperator as O;
    for (operator, a, b, expected) in [
        (O::BITWISE_AND, 12_i32.into(), 10_i32.into(), 8_i32.into()),
        (O::BITWISE_OR, 12_u8.into(), 3_u8.into(), 15_u8.into()),
        (O::BITWISE_AND, (-1_i8).into(), 0xF0_i32.into(), 0xF0_i32.into()),
        (O::BITWISE_OR, (-1_i8).into(), 0_i32.into(), (-1_i32).into()),
        (O::BITWISE_OR, u64::MAX.into(), 0_u8.into(), u64::MAX.into()),
        (O::BITWISE_OR, i64::MIN.into(), 1_u8.into(), (i64::MIN + 1).into()),
        (O::BITWISE_AND, 1.5.into(), 1.into(), NULL),
        (O::BITWISE_AND, NULL, 1.into(), NULL),
        (O::BITWISE_AND, "1".into(), 1.into(), NULL),
    ] {
        let shown = format!("{operator:?} {a:?} {b:?}");
        assert!(makes(operator, vec![a, b], expected), "{shown}");
    }
}

/// A formula, evaluated by the book, and as a where clause whose elements are in any order.
enum Formula {
    Value(Option<bool>),
    Not(Box<Formula>),
    And(Box<Formula>, Box<Formula>),
    Or(Box<Formula>, Box<Formula>),
}

impl Formula {
    fn random(random: &mut u64, depth: u32) -> Self {
        *random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let choice = (*random >> 33) % if depth == 0 { 3 } else { 7 };
        let mut inner = || Box::new(Self::random(random, depth.saturating_sub(1)));
        match choice {
            0 => Self::Value(Some(true)),
            1 => Self::Value(Some(false)),
            2 => Self::Value(None),
            3 => Self::Not(inner()),
            4 | 5 => Self::And(inner(), inner()),
            _ => Self::Or(inner(), inner()),
        }
    }

    fn value(&self) -> Option<bool> {
        match self {
            Self::Value(value) => *value,
            Self::Not(a) => a.value().map(|it| !it),
            // The smallest and the largest of FALSE < NULL < TRUE.
            Self::And(a, b) => level_truth(truth_level(a.value()).min(truth_level(b.value()))),
            Self::Or(a, b) => level_truth(truth_level(a.value()).max(truth_level(b.value()))),
        }
    }

    fn add(&self, elements: &mut Vec<(FilterOperator, Vec<ExtensionObject>)>, backwards: bool) -> u32 {
        let place = elements.len();
        elements.push((FilterOperator::NOT, Vec::new()));
        let (operator, parts): (_, Vec<&Formula>) = match self {
            Self::Value(value) => {
                // NULL is a comparison with nothing.
                let operand = value.map_or(literal(Variant::Empty), literal);
                elements[place] = (FilterOperator::EQUALS, vec![operand, literal(true)]);
                return u32::try_from(place).unwrap();
            }
            Self::Not(a) => (FilterOperator::NOT, vec![a]),
            Self::And(a, b) => (FilterOperator::AND, vec![a, b]),
            Self::Or(a, b) => (FilterOperator::OR, vec![a, b]),
        };
        let mut operands: Vec<_> = if backwards {
            parts
                .iter()
                .rev()
                .map(|it| element(it.add(elements, backwards)))
                .collect()
        } else {
            parts.iter().map(|it| element(it.add(elements, backwards))).collect()
        };
        if backwards {
            operands.reverse();
        }
        elements[place] = (operator, operands);
        u32::try_from(place).unwrap()
    }
}

fn truth_level(value: Option<bool>) -> u8 {
    match value {
        Some(false) => 0,
        None => 1,
        Some(true) => 2,
    }
}

fn level_truth(level: u8) -> Option<bool> {
    [Some(false), None, Some(true)][usize::from(level)]
}

#[test]
fn logic_is_that_of_three_values() {
    let mut random = 1;
    let limits = FilterLimits {
        max_where_elements: 10_000,
        ..FilterLimits::default()
    };
    let mut seen = [0; 3];
    for round in 0..2000 {
        let formula = Formula::random(&mut random, 5);
        let mut elements = Vec::new();
        formula.add(&mut elements, round % 2 == 0);
        let clause = WhereClause::new(content(elements), &Types, &limits).unwrap();
        assert_eq!(clause.passes(&event(1.0)), formula.value() == Some(true));
        seen[usize::from(truth_level(formula.value()))] += 1;
    }
    assert!(seen.iter().all(|count| *count > 100), "{seen:?}");
}
