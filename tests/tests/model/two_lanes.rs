//! Services with two lanes, at a ledger that applies a batch once: batches that conflict or depend on each
//! other are under way one after the other, other ones together.

use std::collections::BTreeSet;

use crate::{
    check::{assert_holds, every_path_ends, shortest_path_to, violated_properties},
    facts::applies_once,
    properties::{
        AFTER_DEPENDENCIES, IN_ORDER, NO_CONFLICT_UNDER_WAY, NOT_SENT_TOO_EARLY, TOGETHER,
    },
    protocol::{Pair, Protocol, TakeoverRule},
};

/// The first batch and the last one; the one between has nothing to do with them.
const FIRST_AND_LAST: &[Pair] = &[(0, 2)];

fn independent() -> Protocol {
    Protocol::new(applies_once()).with_two_lanes(&[])
}

fn one_conflict() -> Protocol {
    Protocol::new(applies_once()).with_two_lanes(FIRST_AND_LAST).with_size(2, &[3])
}

fn one_dependency() -> Protocol {
    independent().with_dependencies(FIRST_AND_LAST).with_size(2, &[3])
}

#[test]
fn independent_batches_hold_with_all_faults() {
    assert_holds("two lanes, 2 instances", independent().with_faults(2, 1));
    assert_holds("two lanes, 3 instances", independent().with_size(3, &[2]).with_faults(1, 1));
}

#[test]
fn conflicting_batches_are_applied_in_order() {
    assert_holds("conflict, faults of instances", one_conflict().with_faults(1, 0));
    assert_holds("conflict, faults of the ledger", one_conflict().with_faults(0, 2));
    assert_holds("conflict, all faults", one_conflict().with_faults(2, 1));
}

/// The first batch conflicts with the third one, and the second one with the fourth one.
#[test]
fn two_pairs_of_conflicting_batches_share_the_lanes() {
    let two_pairs = independent().with_two_lanes(&[(0, 2), (1, 3)]).with_size(2, &[4]);
    assert_holds("two pairs, faults of instances", two_pairs.clone().with_faults(1, 0));
    assert_holds("two pairs, all faults", two_pairs.with_faults(1, 1));
}

#[test]
fn dependents_are_applied_after_their_dependencies() {
    assert_holds("dependency, faults of the ledger", one_dependency().with_faults(0, 2));
    assert_holds("dependency, all faults", one_dependency().with_faults(1, 1));
}

/// The third batch depends on the second one, which depends on the first one.
#[test]
fn chain_of_dependencies_ends_with_its_first() {
    let chain = independent().with_dependencies(&[(0, 1), (1, 2)]).with_size(2, &[3]);
    // Each waits for the one before, so no two are under way together.
    let violated = violated_properties("chain of dependencies", chain.with_faults(1, 1));
    assert_eq!(violated, BTreeSet::from([TOGETHER]));
}

#[test]
fn instances_with_two_lanes_may_pause() {
    let paused = independent().with_pauses().with_final_invalidity().with_faults(1, 1);
    assert_eq!(
        violated_properties("two lanes, pauses", paused),
        BTreeSet::from([NOT_SENT_TOO_EARLY])
    );
}

#[test]
fn clock_jumps_change_nothing_with_two_lanes() {
    assert_holds("two lanes, clock jumps", independent().with_clock_jumps(1).with_faults(1, 1));
}

#[test]
fn database_with_two_lanes_may_go_back() {
    let goes_back =
        one_conflict().with_size(1, &[3]).with_database_that_goes_back().with_final_invalidity();
    assert_holds("two lanes, the database goes back", goes_back.with_faults(0, 1));
}

#[test]
fn batches_are_together_only_with_lanes_and_no_conflict() {
    let one_lane = Protocol { lanes: 1, ..independent() };
    assert_holds("one lane, independent batches", one_lane);
    assert!(
        violated_properties(
            "all conflict",
            Protocol::new(applies_once()).with_two_lanes(&[(0, 1)])
        )
        .contains(TOGETHER)
    );
}

#[test]
fn every_path_ends_with_two_lanes() {
    every_path_ends(&independent().with_faults(1, 1));
}

#[test]
fn without_waiting_for_conflicts_the_order_is_lost() {
    let overtaking = one_conflict().with_rules(|rules| rules.waits_for_conflicts = false);
    shortest_path_to(NO_CONFLICT_UNDER_WAY, &overtaking);
    shortest_path_to(IN_ORDER, &overtaking);
}

#[test]
fn without_waiting_for_dependencies_dependents_are_first() {
    let overtaking = one_dependency().with_rules(|rules| rules.waits_for_dependencies = false);
    shortest_path_to(NO_CONFLICT_UNDER_WAY, &overtaking);
    shortest_path_to(AFTER_DEPENDENCIES, &overtaking);
}

#[test]
fn dependents_of_an_invalid_batch_must_not_be_sent() {
    let sent = one_dependency().with_rules(|rules| rules.dependents_of_invalid_end = false);
    shortest_path_to(AFTER_DEPENDENCIES, &sent);
}

#[test]
fn early_takeover_sends_independent_batches_too_early() {
    let after_idle_expiry =
        independent().with_rules(|rules| rules.takeover = TakeoverRule::AfterIdleExpiry);
    shortest_path_to(NOT_SENT_TOO_EARLY, &after_idle_expiry);
}
