//! The intended protocol: every property holds in every state.

use std::collections::BTreeSet;

use grid_batch_core::ledger::LedgerFacts;

use crate::{
    check::{assert_holds, every_path_ends, violated_properties},
    facts::{applies_again, applies_once, lingering},
    properties::NOT_SENT_TOO_EARLY,
    protocol::{Fence, NodeRule, Protocol, TakeoverRule, WaitRule},
};

/// All properties hold but one: a paused instance may still send what was meant to be sent again.
fn assert_holds_except_sent_too_early(name: &str, protocol: Protocol) {
    assert_eq!(violated_properties(name, protocol), BTreeSet::from([NOT_SENT_TOO_EARLY]));
}

/// Three instances, two services, and three batches.
fn assert_holds_at_full_size(ledger: LedgerFacts) {
    let full_size = Protocol::new(ledger).with_size(3, &[2, 1]);
    assert_holds("full size, faults of instances", full_size.clone().with_faults(2, 0));
    assert_holds("full size, all faults", full_size.with_faults(1, 1));
}

/// Two batches of one service, and more faults.
fn assert_holds_for_one_service(ledger: LedgerFacts) {
    assert_holds(
        "one service, 3 instances",
        Protocol::new(ledger).with_size(3, &[2]).with_faults(2, 1),
    );
    assert_holds(
        "one service, 2 instances",
        Protocol::new(ledger).with_size(2, &[2]).with_faults(2, 2),
    );
}

#[test]
fn full_size_holds_if_the_ledger_applies_once() {
    assert_holds_at_full_size(applies_once());
}

#[test]
fn full_size_holds_if_the_ledger_applies_again() {
    assert_holds_at_full_size(applies_again());
}

#[test]
fn one_service_holds_if_the_ledger_applies_once() {
    assert_holds_for_one_service(applies_once());
}

#[test]
fn one_service_holds_if_the_ledger_applies_again() {
    assert_holds_for_one_service(applies_again());
}

#[test]
fn instances_may_pause_if_the_ledger_applies_once() {
    let paused = Protocol::new(applies_once()).with_pauses().with_final_invalidity();
    assert_holds_except_sent_too_early(
        "instances_pause, once",
        paused.with_size(3, &[2]).with_faults(2, 1),
    );
}

#[test]
fn instances_may_pause_if_the_sender_observes_absence() {
    let paused = Protocol::new(applies_again()).with_pauses();
    assert_holds("instances_pause, again", paused.with_size(3, &[2]).with_faults(2, 1));
}

#[test]
fn one_expiry_suffices_if_longer_than_submissions() {
    for ledger in [applies_once(), applies_again()] {
        let one_phase =
            Protocol::new(ledger).with_rules(|rules| rules.takeover = TakeoverRule::OnePhase);
        assert_holds("one phase", one_phase);
    }
}

#[test]
fn takeover_after_idle_expiry_is_safe_with_observed_absence() {
    let after_idle_expiry = Protocol::new(applies_again())
        .with_rules(|rules| rules.takeover = TakeoverRule::AfterIdleExpiry);
    assert_holds("after_idle_expiry, again", after_idle_expiry);
}

#[test]
fn attempt_alone_fences_records() {
    for ledger in [applies_once(), applies_again()] {
        let attempt_only = Protocol::new(ledger).with_rules(|rules| rules.fence = Fence::Attempt);
        assert_holds("attempt only", attempt_only);
    }
}

#[test]
fn early_absence_is_safe_if_the_ledger_applies_once() {
    let too_soon = Protocol::new(applies_once())
        .with_pauses()
        .with_final_invalidity()
        .with_rules(|rules| rules.wait = WaitRule::FromMark);
    assert_holds_except_sent_too_early("too soon", too_soon);
}

#[test]
fn clock_jumps_change_nothing() {
    for ledger in [applies_once(), applies_again()] {
        assert_holds("clock jumps", Protocol::new(ledger).with_clock_jumps(2));
    }
}

#[test]
fn instance_with_another_ledger_does_nothing() {
    for ledger in [applies_once(), applies_again()] {
        assert_holds("another ledger", Protocol::new(ledger).with_stray());
    }
}

#[test]
fn one_of_two_rules_suffices_for_a_node_that_lags() {
    let lagging = Protocol::new(applies_once()).with_follower();
    assert_holds("a node lags", lagging.clone());
    assert_holds(
        "a node lags, nodes in turn",
        lagging.clone().with_rules(|rules| rules.node = NodeRule::InTurn),
    );
    assert_holds(
        "a node lags, one is asked",
        lagging.with_rules(|rules| rules.invalid_asks_other_nodes = false),
    );
}

/// Absence is accepted too early, which is harmless for a ledger that applies once.
#[test]
fn posts_may_linger_if_the_ledger_applies_once() {
    assert_holds_except_sent_too_early(
        "posts linger",
        Protocol::new(lingering()).with_faults(2, 2),
    );
}

/// An instance may be sending a batch when the database goes back; the ledger applies it once.
#[test]
fn database_may_go_back_if_the_ledger_applies_once() {
    assert_holds_except_sent_too_early(
        "the database goes back, once",
        Protocol::new(applies_once())
            .with_database_that_goes_back()
            .with_final_invalidity()
            .with_faults(1, 1),
    );
}

#[test]
fn database_may_go_back_if_the_ledger_applies_again() {
    assert_holds(
        "the database goes back, again",
        Protocol::new(applies_again()).with_database_that_goes_back().with_faults(1, 1),
    );
}

#[test]
fn every_path_ends_for_each_ledger() {
    for ledger in [applies_once(), applies_again()] {
        every_path_ends(&Protocol::new(ledger).with_size(2, &[2]).with_faults(2, 1));
        every_path_ends(
            &Protocol::new(ledger).with_pauses().with_size(2, &[1, 1]).with_faults(1, 0),
        );
    }
}
