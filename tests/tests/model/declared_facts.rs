//! The rules that follow from facts hold for a ledger that behaves as declared, and a fact that is declared more strongly
//! than the ledger behaves leads to a violation.

use std::{collections::BTreeSet, time::Duration};

use grid_batch_core::ledger::{LedgerFacts, SecondArrival};
use grid_batch_core::queue::StrategyKind;
use grid_batch_service::LedgerType;

use crate::{
    check::{shortest_path_to, violated_properties},
    facts::{LATE, applies_again, applies_once, facts_of, lingering},
    properties::{APPLIED_ONCE, IN_ORDER, NOT_INVALID_BY_LAG, NOT_SENT_TOO_EARLY, TRUE_RECORD},
    protocol::{ACCEPT_ABSENCE_AFTER, Protocol},
};

/// A ledger to which another attempt is harmless may get one too early.
fn assert_holds(name: &str, protocol: Protocol) {
    let mut violated = violated_properties(name, protocol.clone());
    if protocol.declared.second_arrival == SecondArrival::AppliedOnce {
        violated.remove(NOT_SENT_TOO_EARLY);
    }
    violated.iter().for_each(|property| shortest_path_to(property, &protocol));
    assert_eq!(violated, BTreeSet::new(), "{:?}, {:?}", protocol.strategy, protocol.declared);
}

/// The protocol for these facts in a strategy that they allow.
fn protocol(declared: LedgerFacts, strategy: StrategyKind) -> Protocol {
    assert_eq!(declared.lacks_for(strategy), None);
    let protocol = Protocol::new(declared);
    let protocol = match strategy {
        StrategyKind::Serial => protocol,
        StrategyKind::Parallel => protocol.with_two_lanes(&[]),
        StrategyKind::Pipeline => protocol.with_pipeline(),
    };
    if declared.one_node_for_service { protocol } else { protocol.with_follower() }
}

#[test]
fn rules_of_each_known_ledger_hold() {
    let known = LedgerType::known().iter();
    let facts =
        known.flat_map(|it| [false, true].map(|keeps_order| facts_of(it, keeps_order, LATE)));
    for (facts, strategy) in with_strategies(facts) {
        let protocol = protocol(facts, strategy);
        assert_holds("known ledger, all faults", protocol.clone().with_faults(1, 1));
        assert_holds("known ledger, its faults", protocol.with_size(1, &[2]).with_faults(0, 3));
    }
}

/// Facts that make no difference to the model in this strategy have the same value.
fn without_difference(facts: LedgerFacts, strategy: StrategyKind) -> LedgerFacts {
    let observes = !facts.statuses_survive_restart;
    LedgerFacts {
        keeps_order: strategy == StrategyKind::Pipeline,
        enforces_declared_access: strategy == StrategyKind::Parallel,
        has_events: facts.has_events || !observes,
        ..facts
    }
}

/// The strategies that facts allow, as far as the facts make a difference.
fn with_strategies(facts: impl Iterator<Item = LedgerFacts>) -> Vec<(LedgerFacts, StrategyKind)> {
    let mut pairs = Vec::new();
    for facts in facts {
        for strategy in facts.possible_strategies() {
            let pair = (without_difference(facts, strategy), strategy);
            if !pairs.contains(&pair) {
                pairs.push(pair);
            }
        }
    }
    pairs
}

/// All facts that core accepts.
fn accepted_facts() -> impl Iterator<Item = LedgerFacts> {
    let arrivals =
        [SecondArrival::AppliedOnce, SecondArrival::AppliedAgain, SecondArrival::Refused];
    let facts = arrivals.into_iter().flat_map(|second_arrival| {
        (0..1_u32 << 9).map(move |bits| {
            let is = |bit: u32| bits & 1 << bit != 0;
            LedgerFacts {
                second_arrival,
                proves_absence: is(0),
                statuses_survive_restart: is(1),
                reports_earlier_invalid: is(2),
                keeps_order: is(3),
                enforces_declared_access: is(4),
                one_node_for_service: is(5),
                batches_expire: is(6),
                has_events: is(7),
                ..LedgerFacts::weakest(if is(8) { LATE } else { Duration::ZERO })
            }
        })
    });
    facts.filter(|facts| facts.check().is_ok())
}

#[test]
fn rules_of_all_accepted_facts_hold() {
    let accepted = with_strategies(accepted_facts());
    println!("{} combinations", accepted.len());
    for (facts, strategy) in accepted {
        let protocol = protocol(facts, strategy);
        assert_holds("one instance", protocol.clone().with_size(1, &[2]).with_faults(0, 2));
        if strategy == StrategyKind::Parallel {
            let lists = Protocol::new(facts).with_lists();
            assert_holds("lists", lists.with_size(1, &[2]).with_faults(0, 2));
        }
        if strategy == StrategyKind::Serial {
            assert_holds("two instances", protocol.with_size(2, &[1]).with_faults(1, 2));
        }
    }
}

/// What a wrong declaration leads to, with one instance.
fn assert_found(property: &'static str, declared: LedgerFacts, behavior: LedgerFacts) {
    assert_ne!(declared, behavior);
    assert_eq!(declared.check(), Ok(()));
    let wrong = Protocol::new(declared).with_behavior(behavior).with_size(1, &[2]);
    shortest_path_to(property, &wrong.with_faults(0, 3));
}

#[test]
fn batch_that_is_applied_again_is_found() {
    let declared = lingering();
    let behavior = LedgerFacts { second_arrival: SecondArrival::AppliedAgain, ..declared };
    assert_found(APPLIED_ONCE, declared, behavior);
}

#[test]
fn second_arrival_that_is_refused_is_found() {
    let declared = lingering();
    let behavior = LedgerFacts { second_arrival: SecondArrival::Refused, ..declared };
    assert_found(TRUE_RECORD, declared, behavior);
}

#[test]
fn absence_that_proves_nothing_is_found() {
    let declared = applies_again();
    assert_found(APPLIED_ONCE, declared, LedgerFacts { proves_absence: false, ..declared });
}

#[test]
fn request_that_lingers_longer_is_found() {
    for (property, behavior) in [(APPLIED_ONCE, applies_again()), (TRUE_RECORD, lingering())] {
        for late_arrival_limit in [Duration::ZERO, ACCEPT_ABSENCE_AFTER] {
            assert_found(property, LedgerFacts { late_arrival_limit, ..behavior }, behavior);
        }
    }
}

#[test]
fn statuses_that_a_restart_forgets_are_found() {
    let behavior = applies_again();
    let declared = LedgerFacts { statuses_survive_restart: true, ..behavior };
    assert_found(APPLIED_ONCE, declared, behavior);
}

#[test]
fn invalid_report_of_an_earlier_attempt_is_found() {
    let behavior = lingering();
    assert!(behavior.reports_earlier_invalid);
    let declared = LedgerFacts { reports_earlier_invalid: false, ..behavior };
    assert_found(TRUE_RECORD, declared, behavior);
}

#[test]
fn events_that_are_missed_unnoticed_are_found() {
    let declared = applies_again();
    assert_found(APPLIED_ONCE, declared, LedgerFacts { has_events: false, ..declared });
}

#[test]
fn expired_batch_that_is_applied_is_found() {
    let behavior = lingering();
    assert_found(TRUE_RECORD, LedgerFacts { batches_expire: true, ..behavior }, behavior);
}

#[test]
fn order_that_is_not_kept_is_found() {
    let behavior = applies_once();
    let declared = LedgerFacts { keeps_order: true, ..behavior };
    let wrong = protocol(declared, StrategyKind::Pipeline).with_behavior(behavior);
    shortest_path_to(IN_ORDER, &wrong.with_size(1, &[2]).with_faults(0, 0));
}

#[test]
fn access_that_was_not_declared_is_found() {
    let declared = applies_once();
    let behavior = LedgerFacts { enforces_declared_access: false, ..declared };
    let wrong = protocol(declared, StrategyKind::Parallel).with_behavior(behavior);
    shortest_path_to(IN_ORDER, &wrong.with_size(1, &[2]).with_faults(0, 0));
}

#[test]
fn service_at_several_nodes_is_found() {
    let behavior = applies_once();
    let declared = LedgerFacts { one_node_for_service: true, ..behavior };
    let wrong = Protocol::new(declared).with_behavior(behavior).with_follower();
    shortest_path_to(NOT_INVALID_BY_LAG, &wrong.with_size(1, &[2]).with_faults(0, 2));
}

/// A new fact needs a test above, unless the model does not depend on it.
#[test]
fn facts_outside_of_the_model_are_listed() {
    let LedgerFacts {
        second_arrival: _,
        proves_absence: _,
        late_arrival_limit: _,
        statuses_survive_restart: _,
        reports_earlier_invalid: _,
        keeps_order: _,
        enforces_declared_access: _,
        one_node_for_service: _,
        batches_expire: _,
        has_events: _,
        // About keys, names, who signs and when to look, not about what the ledger applies.
        tells_identity: _,
        checks_keys: _,
        signs_batches: _,
        compares_states: _,
        quiet_after: _,
    } = applies_once();
}
