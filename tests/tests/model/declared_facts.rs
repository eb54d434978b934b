//! The rules that follow from facts hold for a ledger that behaves as declared, and a fact that is declared more strongly
//! than the ledger behaves leads to a violation.

use std::collections::{BTreeSet, HashSet};
use std::time::Duration;

use grid_batch_core::{LedgerFacts, SecondArrival, Strategy};
use grid_batch_service::LedgerType;

use crate::{
    check::{shortest_path_to, violated_properties},
    facts::{LATE, applies_again, applies_once, facts_of, lingering},
    properties::{APPLIED_ONCE, IN_ORDER, NOT_INVALID_BY_LAG, NOT_SENT_TOO_EARLY, TRUE_RECORD},
    protocol::{Pair, Protocol},
};

/// Two batches of which a third one conflicts with the first.
const FIRST_AND_LAST: &[Pair] = &[(0, 2)];

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
fn protocol(declared: LedgerFacts, strategy: Strategy) -> Protocol {
    assert_eq!(declared.lacks_for(strategy), None);
    let protocol = Protocol::new(declared);
    let protocol = match strategy {
        Strategy::Serial => protocol,
        Strategy::Parallel => protocol.with_two_lanes(&[]),
        Strategy::Pipeline => protocol.with_pipeline(),
    };
    match declared.one_node_for_service {
        true => protocol,
        false => protocol.with_follower(),
    }
}

#[test]
fn rules_of_each_known_ledger_hold() {
    for ledger in LedgerType::known() {
        let facts = [false, true].map(|keeps_order| facts_of(ledger, keeps_order, LATE));
        let facts: HashSet<_> = facts.into_iter().map(|facts| format!("{facts:?}")).collect();
        println!("{}: {facts:?}", ledger.name);
        for keeps_order in [false, true] {
            let facts = facts_of(ledger, keeps_order, LATE);
            for strategy in facts.possible_strategies() {
                let name = format!("{}, {strategy:?}", ledger.name);
                assert_holds(&name, protocol(facts, strategy).with_faults(1, 1));
                assert_holds(&name, protocol(facts, strategy).with_size(1, &[2]).with_faults(0, 3));
            }
        }
    }
}

/// Facts that make no difference to the model in this strategy have the same value.
fn without_difference(facts: LedgerFacts, strategy: Strategy) -> LedgerFacts {
    let observes = !facts.statuses_survive_restart;
    LedgerFacts {
        keeps_order: strategy == Strategy::Pipeline,
        enforces_declared_access: strategy == Strategy::Parallel,
        has_events: facts.has_events || !observes,
        ..facts
    }
}

/// All facts that core accepts and the strategies that they allow, as far as they make a difference.
fn accepted_facts() -> Vec<(LedgerFacts, Strategy)> {
    let mut accepted = Vec::new();
    let arrivals =
        [SecondArrival::AppliedOnce, SecondArrival::AppliedAgain, SecondArrival::Refused];
    for second_arrival in arrivals {
        for bits in 0..1_u32 << 9 {
            let is = |bit: u32| bits & 1 << bit != 0;
            let facts = LedgerFacts {
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
            };
            for strategy in facts.possible_strategies().filter(|_| facts.check().is_ok()) {
                let pair = (without_difference(facts, strategy), strategy);
                if !accepted.contains(&pair) {
                    accepted.push(pair);
                }
            }
        }
    }
    accepted
}

#[test]
fn rules_of_all_accepted_facts_hold() {
    let accepted = accepted_facts();
    println!("{} combinations", accepted.len());
    for (facts, strategy) in accepted {
        println!("{strategy:?} {facts:?}");
        let small = protocol(facts, strategy).with_size(1, &[2]).with_faults(0, 2);
        assert_holds("faults of the ledger", small);
    }
}

fn _unused() {
    let _ = (APPLIED_ONCE, IN_ORDER, NOT_INVALID_BY_LAG, TRUE_RECORD, FIRST_AND_LAST);
    let _ = (applies_again, applies_once, lingering, shortest_path_to);
}
