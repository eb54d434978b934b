//! The purpose of each rule: a path to a violation without it.

use crate::{
    check::shortest_path_to,
    properties::{
        APPLIED_ONCE, NO_DEADLOCK, NOT_SENT_BLINDLY, NOT_SENT_TOO_EARLY, ONE_OWNER, TRUE_RECORD,
    },
    protocol::{
        AbsenceRule, Fence,
        Ledger::{AppliesAgain, AppliesOnce},
        MarkRule, Protocol, RecoveryRule, TakeoverRule, WaitRule,
    },
};

#[test]
fn without_fence_a_late_outcome_causes_a_blind_resend() {
    let unfenced = Protocol::new(AppliesOnce).with_rules(|rules| rules.fence = Fence::None);
    shortest_path_to(NOT_SENT_BLINDLY, &unfenced);
}

#[test]
fn resending_recovered_batches_applies_them_twice() {
    let blind =
        |ledger| Protocol::new(ledger).with_rules(|rules| rules.recovery = RecoveryRule::SendAgain);
    shortest_path_to(NOT_SENT_BLINDLY, &blind(AppliesOnce));
    shortest_path_to(APPLIED_ONCE, &blind(AppliesAgain));
}

#[test]
fn reported_absence_applies_batches_twice() {
    let trusted =
        Protocol::new(AppliesAgain).with_rules(|rules| rules.absence = AbsenceRule::Reported);
    shortest_path_to(APPLIED_ONCE, &trusted);
}

#[test]
fn takeover_after_idle_expiry_overtakes_a_healthy_sender() {
    let after_idle_expiry = Protocol::new(AppliesOnce)
        .with_rules(|rules| rules.takeover = TakeoverRule::AfterIdleExpiry);
    shortest_path_to(NOT_SENT_TOO_EARLY, &after_idle_expiry);
    shortest_path_to(TRUE_RECORD, &after_idle_expiry);
}

#[test]
fn marking_after_idle_expiry_sends_past_full_expiry() {
    let after_idle_expiry =
        Protocol::new(AppliesOnce).with_rules(|rules| rules.mark = MarkRule::OwnerBeforeFullExpiry);
    shortest_path_to(NOT_SENT_TOO_EARLY, &after_idle_expiry);
    shortest_path_to(TRUE_RECORD, &after_idle_expiry);
}

#[test]
fn without_a_new_epoch_a_service_has_two_owners() {
    let unraised = Protocol::new(AppliesOnce).with_rules(|rules| rules.claim_raises_epoch = false);
    shortest_path_to(ONE_OWNER, &unraised);
}

#[test]
fn marking_without_a_claim_blocks_the_service() {
    let unclaimed =
        Protocol::new(AppliesOnce).with_rules(|rules| rules.mark = MarkRule::FormerOwner);
    shortest_path_to(NO_DEADLOCK, &unclaimed);
}

#[test]
fn absence_observed_by_another_instance_is_not_enough() {
    let observed = Protocol::new(AppliesAgain)
        .with_pauses()
        .with_rules(|rules| rules.absence = AbsenceRule::Observed);
    shortest_path_to(APPLIED_ONCE, &observed);
}

#[test]
fn wait_from_the_mark_is_over_before_a_paused_instance_sends() {
    let too_soon = Protocol::new(AppliesAgain)
        .with_pauses()
        .with_rules(|rules| rules.wait = WaitRule::FromMark);
    shortest_path_to(APPLIED_ONCE, &too_soon);
}

#[test]
fn forgotten_invalidity_and_a_pause_falsify_the_record() {
    shortest_path_to(TRUE_RECORD, &Protocol::new(AppliesOnce).with_pauses());
}
