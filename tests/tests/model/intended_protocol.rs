//! The protocol as it is meant: every property holds in every state.

use std::collections::BTreeSet;

use crate::{
    check::{broken, every_path_ends},
    properties::NOT_TOO_EARLY,
    protocol::{
        Expiry, Fence,
        Ledger::{self, AppliesAgain, AppliesOnce},
        Protocol, Wait,
    },
};

fn holds(name: &str, protocol: Protocol) {
    assert_eq!(broken(name, protocol), BTreeSet::new());
}

/// All holds but one: a paused instance still sends what somebody else was told to send again.
fn holds_although_sent_too_early(name: &str, protocol: Protocol) {
    assert_eq!(broken(name, protocol), BTreeSet::from([NOT_TOO_EARLY]));
}

/// Three instances, two services, and three batches.
fn holds_in_the_whole(ledger: Ledger) {
    let whole = Protocol::new(ledger).sized(3, &[2, 1]);
    holds("the whole, instances in trouble", whole.clone().troubled(2, 0));
    holds("the whole, all in trouble", whole.troubled(1, 1));
}

/// Two batches of one service, and more that goes wrong.
fn holds_for_one_service(ledger: Ledger) {
    holds("one service, 3 instances", Protocol::new(ledger).sized(3, &[2]).troubled(2, 1));
    holds("one service, 2 instances", Protocol::new(ledger).sized(2, &[2]).troubled(2, 2));
}

#[test]
fn three_instances_two_services_and_three_batches_on_a_ledger_that_applies_once() {
    holds_in_the_whole(AppliesOnce);
}

#[test]
fn three_instances_two_services_and_three_batches_on_a_ledger_that_applies_again() {
    holds_in_the_whole(AppliesAgain);
}

#[test]
fn one_service_in_much_trouble_on_a_ledger_that_applies_once() {
    holds_for_one_service(AppliesOnce);
}

#[test]
fn one_service_in_much_trouble_on_a_ledger_that_applies_again() {
    holds_for_one_service(AppliesAgain);
}

#[test]
fn instances_may_pause_where_the_ledger_applies_once() {
    let paused = Protocol::new(AppliesOnce).with_pauses().with_lasting_refusals();
    holds_although_sent_too_early("pauses, once", paused.sized(3, &[2]).troubled(2, 1));
}

#[test]
fn instances_may_pause_where_absence_on_a_ledger_that_applies_again_is_watched() {
    let paused = Protocol::new(AppliesAgain).with_pauses();
    holds("pauses, again", paused.sized(3, &[2]).troubled(2, 1));
}

#[test]
fn one_expiry_is_enough_where_it_outlasts_every_submission() {
    for ledger in [AppliesOnce, AppliesAgain] {
        let one_phase = Protocol::new(ledger).but(|rules| rules.expiry = Expiry::OnePhase);
        holds("one phase", one_phase);
    }
}

#[test]
fn taking_between_the_expiries_is_harmless_where_absence_is_watched() {
    let hasty = Protocol::new(AppliesAgain).but(|rules| rules.expiry = Expiry::Hasty);
    holds("hasty, again", hasty);
}

#[test]
fn for_what_is_recorded_the_attempt_alone_is_fence_enough() {
    for ledger in [AppliesOnce, AppliesAgain] {
        let attempt_only = Protocol::new(ledger).but(|rules| rules.fence = Fence::Attempt);
        holds("attempt only", attempt_only);
    }
}

#[test]
fn a_ledger_that_applies_once_forgives_that_absence_is_believed_too_soon() {
    let too_soon = Protocol::new(AppliesOnce)
        .with_pauses()
        .with_lasting_refusals()
        .but(|rules| rules.wait = Wait::FromMarking);
    holds_although_sent_too_early("too soon", too_soon);
}

#[test]
fn every_path_comes_to_an_end() {
    for ledger in [AppliesOnce, AppliesAgain] {
        every_path_ends(&Protocol::new(ledger).sized(2, &[2]).troubled(2, 1));
        every_path_ends(&Protocol::new(ledger).with_pauses().sized(2, &[1, 1]).troubled(1, 0));
    }
}
