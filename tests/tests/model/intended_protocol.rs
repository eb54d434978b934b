//! The intended protocol: every property holds in every state.

use std::collections::BTreeSet;

use crate::{
    check::{every_path_ends, violated_properties},
    properties::NOT_SENT_TOO_EARLY,
    protocol::{
        Fence,
        Ledger::{self, AppliesAgain, AppliesOnce},
        Protocol, TakeoverRule, WaitRule,
    },
};

fn assert_holds(name: &str, protocol: Protocol) {
    assert_eq!(violated_properties(name, protocol), BTreeSet::new());
}

/// All properties hold but one: a paused instance may still send what was meant to be sent again.
fn assert_holds_except_sent_too_early(name: &str, protocol: Protocol) {
    assert_eq!(violated_properties(name, protocol), BTreeSet::from([NOT_SENT_TOO_EARLY]));
}

/// Three instances, two services, and three batches.
fn assert_holds_at_full_size(ledger: Ledger) {
    let full_size = Protocol::new(ledger).with_size(3, &[2, 1]);
    assert_holds("full size, faults of instances", full_size.clone().with_faults(2, 0));
    assert_holds("full size, all faults", full_size.with_faults(1, 1));
}

/// Two batches of one service, and more faults.
fn assert_holds_for_one_service(ledger: Ledger) {
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
    assert_holds_at_full_size(AppliesOnce);
}

#[test]
fn full_size_holds_if_the_ledger_applies_again() {
    assert_holds_at_full_size(AppliesAgain);
}

#[test]
fn one_service_holds_if_the_ledger_applies_once() {
    assert_holds_for_one_service(AppliesOnce);
}

#[test]
fn one_service_holds_if_the_ledger_applies_again() {
    assert_holds_for_one_service(AppliesAgain);
}

#[test]
fn instances_may_pause_if_the_ledger_applies_once() {
    let paused = Protocol::new(AppliesOnce).with_pauses().with_final_invalidity();
    assert_holds_except_sent_too_early(
        "instances_pause, once",
        paused.with_size(3, &[2]).with_faults(2, 1),
    );
}

#[test]
fn instances_may_pause_if_the_sender_observes_absence() {
    let paused = Protocol::new(AppliesAgain).with_pauses();
    assert_holds("instances_pause, again", paused.with_size(3, &[2]).with_faults(2, 1));
}

#[test]
fn one_expiry_suffices_if_longer_than_submissions() {
    for ledger in [AppliesOnce, AppliesAgain] {
        let one_phase =
            Protocol::new(ledger).with_rules(|rules| rules.takeover = TakeoverRule::OnePhase);
        assert_holds("one phase", one_phase);
    }
}

#[test]
fn takeover_after_idle_expiry_is_safe_with_observed_absence() {
    let after_idle_expiry = Protocol::new(AppliesAgain)
        .with_rules(|rules| rules.takeover = TakeoverRule::AfterIdleExpiry);
    assert_holds("after_idle_expiry, again", after_idle_expiry);
}

#[test]
fn attempt_alone_fences_records() {
    for ledger in [AppliesOnce, AppliesAgain] {
        let attempt_only = Protocol::new(ledger).with_rules(|rules| rules.fence = Fence::Attempt);
        assert_holds("attempt only", attempt_only);
    }
}

#[test]
fn early_absence_is_safe_if_the_ledger_applies_once() {
    let too_soon = Protocol::new(AppliesOnce)
        .with_pauses()
        .with_final_invalidity()
        .with_rules(|rules| rules.wait = WaitRule::FromMark);
    assert_holds_except_sent_too_early("too soon", too_soon);
}

#[test]
fn every_path_ends_for_each_ledger() {
    for ledger in [AppliesOnce, AppliesAgain] {
        every_path_ends(&Protocol::new(ledger).with_size(2, &[2]).with_faults(2, 1));
        every_path_ends(
            &Protocol::new(ledger).with_pauses().with_size(2, &[1, 1]).with_faults(1, 0),
        );
    }
}
