//! Whether a request may still run as the owner it was admitted as.

use std::sync::Arc;

use backplane_queue::isolation::{
    Binding, Class, Evidence, Ground, Identity, Intent, Isolation, Mapping, Owner, Profile, Protection, Verdict,
};

use crate::owners::{binding, evidence};
use crate::support::{established, of_profile, user};

struct Case {
    isolation: Arc<Isolation>,
    owner: Owner,
    then: (Evidence, Option<Binding>),
    now: (Evidence, Option<Binding>),
    mapping: Option<(&'static str, Class)>,
    intent: Intent,
}

fn case() -> Case {
    let isolation = of_profile(Profile::TrustedReservations);
    let ground = (evidence(), Some(binding(Some("operator"))));
    Case {
        owner: established(&isolation, "operator"),
        isolation,
        then: ground.clone(),
        now: ground,
        mapping: None,
        intent: Intent::Work,
    }
}

impl Case {
    fn verdict(&self) -> Verdict {
        let ground = |(evidence, binding)| Ground {
            evidence,
            binding: Option::as_ref(binding),
        };
        let then = ground((&self.then.0, &self.then.1));
        let now = ground((&self.now.0, &self.now.1));
        let mapping = self.mapping.map(|(key, class)| Mapping { key, class });
        self.isolation.revalidate(&self.owner, then, now, mapping, self.intent)
    }
}

#[test]
fn what_has_not_changed_is_good() {
    assert_eq!(case().verdict(), Verdict::Good);
    let mut case = case();
    case.then.1 = None;
    case.now.1 = None;
    assert_eq!(case.verdict(), Verdict::Good);
}

#[test]
fn an_owner_of_another_provider_or_stage_is_refused() {
    let mut foreign = case();
    foreign.owner = established(&of_profile(Profile::Balanced), "operator");
    assert_eq!(foreign.verdict(), Verdict::OwnerChanged);
    let mut single = case();
    single.owner = single.isolation.continuity(&single.owner).unwrap();
    assert_eq!(single.verdict(), Verdict::OwnerChanged);
}

#[test]
fn every_change_of_the_channel_is_seen() {
    let changes: [fn(&mut Evidence); 7] = [
        |now| now.channel = 8,
        |now| now.policy = Some(Arc::from("other")),
        |now| now.policy = None,
        |now| now.protection = Protection::SignAndEncrypt,
        |now| now.certificate = Some(Arc::from(&b"other"[..])),
        |now| now.peer = None,
        |now| now.upstream = Some(Arc::from("proxy")),
    ];
    for (index, change) in changes.into_iter().enumerate() {
        let mut case = case();
        change(&mut case.now.0);
        assert_eq!(case.verdict(), Verdict::ChannelChanged, "{index}");
    }
}

#[test]
fn certificates_are_compared_by_value_and_not_without_a_policy() {
    let mut same = case();
    same.now.0.certificate = Some(Arc::from(&b"certificate"[..]));
    assert_eq!(same.verdict(), Verdict::Good);
    let mut missing = case();
    missing.now.0.certificate = None;
    assert_eq!(missing.verdict(), Verdict::ChannelChanged);
    let mut unproved = case();
    unproved.then.0.policy = None;
    unproved.now.0.policy = None;
    unproved.now.0.certificate = None;
    assert_eq!(unproved.verdict(), Verdict::Good);
}

#[test]
fn a_session_that_is_gone_is_told_apart_from_one_that_changed() {
    let mut gone = case();
    gone.now.1 = None;
    assert_eq!(gone.verdict(), Verdict::SessionGone);
    for change in [
        |now: &mut Binding| now.activation = 2,
        |now: &mut Binding| now.session = 2,
        |now: &mut Binding| now.user = None,
    ] {
        let mut case = case();
        case.now.1.as_mut().map(change).unwrap();
        assert_eq!(case.verdict(), Verdict::OwnerChanged);
    }
}

#[test]
fn a_session_that_came_since_does_not_promote() {
    let mut case = case();
    case.then.1 = None;
    assert_eq!(case.verdict(), Verdict::OwnerChanged);
}

#[test]
fn a_channel_that_changed_goes_before_a_session_that_is_gone() {
    let mut case = case();
    case.now.0.channel = 8;
    case.now.1 = None;
    assert_eq!(case.verdict(), Verdict::ChannelChanged);
}

#[test]
fn a_class_that_is_no_longer_earned_is_refused() {
    let mut case = case();
    case.owner = user(&case.isolation, "operator", Class::Control);
    assert_eq!(case.verdict(), Verdict::OwnerChanged);
    case.intent = Intent::End;
    assert_eq!(case.verdict(), Verdict::Good);
    case.then.1 = None;
    case.now.1 = None;
    assert_eq!(case.verdict(), Verdict::OwnerChanged);
}

#[test]
fn a_classifier_must_say_the_same_again() {
    let mut mapped = case();
    mapped.owner = mapped.isolation.mapped("plant", Class::Bootstrap).unwrap();
    for (mapping, expected) in [
        (Some(("plant", Class::Bootstrap)), Verdict::Good),
        (Some(("plant", Class::Established)), Verdict::OwnerChanged),
        (Some(("plant", Class::Trusted)), Verdict::OwnerChanged),
        (Some(("plan", Class::Bootstrap)), Verdict::OwnerChanged),
        (None, Verdict::OwnerChanged),
    ] {
        mapped.mapping = mapping;
        assert_eq!(mapped.verdict(), expected, "{mapping:?}");
    }
    mapped.owner = mapped.isolation.trusted("plant").unwrap();
    mapped.mapping = Some(("plant", Class::Trusted));
    assert_eq!(mapped.verdict(), Verdict::Good);
    mapped.mapping = None;
    assert_eq!(mapped.verdict(), Verdict::OwnerChanged);
}

#[test]
fn a_mapping_to_the_shared_part_that_is_gone_is_refused() {
    let mut case = case();
    case.owner = case.isolation.mapped("operator", Class::Established).unwrap();
    assert_eq!(case.verdict(), Verdict::OwnerChanged);
}

#[test]
fn a_mapping_that_came_since_is_refused() {
    let mut case = case();
    case.mapping = Some(("operator", Class::Established));
    assert_eq!(case.verdict(), Verdict::OwnerChanged);
}

#[test]
fn an_address_is_enough_to_stay_the_same() {
    let mut case = case();
    case.owner = case
        .isolation
        .built_in(Identity::Peer(None), Class::Established)
        .unwrap();
    assert_eq!(case.verdict(), Verdict::Good);
}
