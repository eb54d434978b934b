//! Lists: conflicting batches that one request sends to a ledger with one publisher, which applies a batch once. It
//! gets all of them or none, and applies them in their order.

use std::collections::BTreeSet;

use crate::{
    check::{assert_holds, every_path_ends, shortest_path_to, violated_properties},
    facts::{applies_once, lingering},
    properties::{IN_ORDER, NOT_SENT_TOO_EARLY},
    protocol::{Protocol, ResendRule},
};

fn lists() -> Protocol {
    Protocol::new(applies_once()).with_lists()
}

#[test]
fn batches_of_lists_are_applied_in_order() {
    assert_holds("lists, 2 instances", lists().with_faults(2, 2));
    assert_holds("lists, 3 batches", lists().with_size(2, &[3]).with_faults(1, 2));
    assert_holds("lists, 4 batches", lists().with_size(1, &[4]).with_faults(0, 3));
}

/// The second and the third batch conflict; the others are sent with them.
#[test]
fn lists_have_batches_that_conflict_with_no_other() {
    let mixed = Protocol { conflicts: Some(&[(1, 2)]), lanes: 3, list: 3, ..lists() };
    assert_holds("lists of three, 3 batches", mixed.clone().with_size(2, &[3]).with_faults(1, 1));
    let dependent = mixed.with_dependencies(&[(0, 1)]).with_size(1, &[3]);
    assert_holds("lists of three, a dependency", dependent.with_faults(0, 3));
}

#[test]
fn lists_of_three_are_applied_in_order() {
    let three = Protocol { lanes: 3, list: 3, ..lists() };
    assert_holds("lists of three", three.with_size(2, &[3]).with_faults(1, 2));
}

/// Absence is accepted too early, which is harmless for a ledger that applies once.
#[test]
fn lists_may_arrive_late() {
    let late = Protocol::new(lingering()).with_lists();
    for protocol in [
        late.clone().with_faults(2, 2),
        late.clone().with_size(1, &[3]).with_faults(0, 4),
        late.with_size(2, &[3]).with_faults(1, 2),
    ] {
        let violated = violated_properties("lists arrive late", protocol);
        assert_eq!(violated, BTreeSet::from([NOT_SENT_TOO_EARLY]));
    }
}

#[test]
fn absence_of_a_list_that_may_arrive_is_not_enough() {
    let early = Protocol::new(lingering())
        .with_lists()
        .with_rules(|rules| rules.listed_absence_counts_after = rules.absence_counts_after);
    shortest_path_to(IN_ORDER, &early.with_size(1, &[2]).with_faults(0, 3));
}

#[test]
fn instances_with_lists_may_pause() {
    let paused = lists().with_pauses().with_final_invalidity().with_faults(1, 1);
    assert_eq!(violated_properties("lists, pauses", paused), BTreeSet::from([NOT_SENT_TOO_EARLY]));
}

#[test]
fn database_with_lists_may_go_back() {
    let goes_back = lists().with_size(1, &[2]).with_database_that_goes_back();
    let goes_back = goes_back.with_final_invalidity().with_faults(0, 2);
    assert_holds("lists, the database goes back", goes_back);
}

#[test]
fn every_path_ends_with_lists() {
    every_path_ends(&lists().with_faults(1, 1));
    every_path_ends(&Protocol::new(lingering()).with_lists().with_faults(0, 2));
}

#[test]
fn lost_batches_of_a_list_must_not_be_sent_again_singly() {
    let each = lists().with_rules(|rules| rules.resend = ResendRule::Each);
    shortest_path_to(IN_ORDER, &each.with_size(1, &[2]).with_faults(0, 1));
}

/// The first one was invalid, which the node has forgotten, and the second one was applied.
#[test]
fn first_of_a_list_must_wait_for_what_is_known_of_the_second() {
    let at_once = lists().with_rules(|rules| rules.resend = ResendRule::FirstAtOnce);
    shortest_path_to(IN_ORDER, &at_once.with_size(1, &[2]).with_faults(0, 2));
}

#[test]
fn batch_that_was_overtaken_must_be_held() {
    let sent = lists().with_rules(|rules| rules.overtaken_are_held = false);
    shortest_path_to(IN_ORDER, &sent.with_size(1, &[2]).with_faults(0, 2));
}

#[test]
fn second_publisher_reverses_a_list() {
    let published = lists().with_two_publishers().with_size(1, &[2]);
    shortest_path_to(IN_ORDER, &published.with_faults(0, 0));
}
