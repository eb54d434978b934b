//! What each rule is for: without it something breaks, and this is how.

use crate::{
    check::shortest_path_to,
    properties::{NO_DEAD_END, NOT_BLINDLY, NOT_TOO_EARLY, ONCE, ONE_OWNER, TRUE_RECORD},
    protocol::{
        Absence, Expiry, Fence, Found,
        Ledger::{AppliesAgain, AppliesOnce},
        Marking, Protocol, Wait,
    },
};

#[test]
fn without_a_fence_a_late_outcome_has_a_batch_sent_again_that_was_accepted() {
    let unfenced = Protocol::new(AppliesOnce).but(|rules| rules.fence = Fence::Nothing);
    shortest_path_to(NOT_BLINDLY, &unfenced);
}

#[test]
fn a_new_owner_that_sends_what_it_finds_has_it_applied_twice() {
    let blind = |ledger| Protocol::new(ledger).but(|rules| rules.found = Found::SentAgain);
    shortest_path_to(NOT_BLINDLY, &blind(AppliesOnce));
    shortest_path_to(ONCE, &blind(AppliesAgain));
}

#[test]
fn a_ledger_that_applies_again_is_not_to_be_believed_when_it_does_not_know_a_batch() {
    let trusted = Protocol::new(AppliesAgain).but(|rules| rules.absence = Absence::Said);
    shortest_path_to(ONCE, &trusted);
}

#[test]
fn taking_between_the_expiries_overtakes_a_healthy_owner_that_is_sending() {
    let hasty = Protocol::new(AppliesOnce).but(|rules| rules.expiry = Expiry::Hasty);
    shortest_path_to(NOT_TOO_EARLY, &hasty);
    shortest_path_to(TRUE_RECORD, &hasty);
}

#[test]
fn one_that_marks_between_the_expiries_may_still_be_sending_at_the_second() {
    let late = Protocol::new(AppliesOnce).but(|rules| rules.marking = Marking::OwnerLate);
    shortest_path_to(NOT_TOO_EARLY, &late);
    shortest_path_to(TRUE_RECORD, &late);
}

#[test]
fn without_a_new_epoch_for_each_taking_two_own_the_same() {
    let unraised = Protocol::new(AppliesOnce).but(|rules| rules.taking_raises_epoch = false);
    shortest_path_to(ONE_OWNER, &unraised);
}

#[test]
fn one_that_marks_without_a_claim_and_is_gone_leaves_the_service_locked() {
    let unclaimed = Protocol::new(AppliesOnce).but(|rules| rules.marking = Marking::FormerOwner);
    shortest_path_to(NO_DEAD_END, &unclaimed);
}

#[test]
fn who_only_watched_does_not_know_what_a_paused_instance_still_sends() {
    let watched =
        Protocol::new(AppliesAgain).with_pauses().but(|rules| rules.absence = Absence::Watched);
    shortest_path_to(ONCE, &watched);
}

#[test]
fn counted_from_the_marking_the_wait_is_over_before_a_paused_instance_has_sent() {
    let too_soon =
        Protocol::new(AppliesAgain).with_pauses().but(|rules| rules.wait = Wait::FromMarking);
    shortest_path_to(ONCE, &too_soon);
}

#[test]
fn a_forgotten_refusal_and_a_paused_instance_make_the_record_untrue() {
    shortest_path_to(TRUE_RECORD, &Protocol::new(AppliesOnce).with_pauses());
}
