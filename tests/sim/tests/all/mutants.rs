//! The simulation can fail: each fault that is put in breaks the rule that it must break.

use std::time::Duration;

use backplane_sim::{Mutant, Options, Rule, run};

/// The rules of which a fault must break one.
fn expected(mutant: Mutant) -> &'static [Rule] {
    match mutant {
        Mutant::LosesNotification => &[Rule::Lost],
        Mutant::DoublesNotification | Mutant::ResendsAfterReload | Mutant::DoublesPublish => &[Rule::Doubled],
        Mutant::SkipsSequenceNumber => &[Rule::SequenceNumbers],
        Mutant::HidesAvailable | Mutant::RepublishesWrong => &[Rule::Available],
        Mutant::SwallowsKeepAlive | Mutant::NeverExpires => &[Rule::StateTable],
        Mutant::AnswersTwice | Mutant::NeverAnswers => &[Rule::Answers],
        Mutant::OverlooksChange => &[Rule::Lost],
        Mutant::FalsifiesValue | Mutant::AsksWithOldTags => &[Rule::WrongValue],
        Mutant::SkipsSamples => &[Rule::SampleTimes],
        Mutant::KeepsTooManyRequests | Mutant::Leaks => &[Rule::Bounded],
        Mutant::SwapsChunks => &[Rule::WireOrder],
    }
}

#[test]
fn every_fault_is_caught_by_the_checker_it_is_for() {
    for mutant in Mutant::ALL {
        let mut caught = None;
        // Not every seed comes to where the fault shows.
        for seed in 1..=20 {
            let outcome = run(&Options {
                mutant: Some(mutant),
                duration: Duration::from_secs(30),
                ..Options::new(seed)
            })
            .expect("a world");
            if let Some(first) = outcome.violations.first() {
                // One fault may be seen by several checkers at once.
                assert!(
                    outcome.violations.iter().any(|it| expected(mutant).contains(&it.rule)),
                    "{mutant:?} with seed {seed} breaks another rule: {first}"
                );
                caught = Some(seed);
                break;
            }
        }
        println!("{mutant:?}: caught with seed {caught:?}");
        assert!(caught.is_some(), "{mutant:?} is not caught");
    }
}
