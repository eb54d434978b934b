//! The purpose of each rule: a path to a violation without it.

use std::time::Duration;

use crate::{
    check::shortest_path_to,
    facts::{applies_again, applies_once, lingering},
    properties::{
        APPLIED_ONCE, IN_ORDER, NO_DEADLOCK, NOT_INVALID_BY_LAG, NOT_SENT_BLINDLY,
        NOT_SENT_TOO_EARLY, ONE_OWNER, RIGHT_LEDGER, TRUE_RECORD,
    },
    protocol::{
        AbsenceRule, ClockRule, Fence, MarkRule, NodeRule, Protocol, RecoveryRule, RestoreRule,
        TakeoverRule, WaitRule,
    },
};

#[test]
fn without_fence_a_late_outcome_causes_a_blind_resend() {
    let unfenced = Protocol::new(applies_once()).with_rules(|rules| rules.fence = Fence::None);
    shortest_path_to(NOT_SENT_BLINDLY, &unfenced);
}

#[test]
fn resending_recovered_batches_applies_them_twice() {
    let blind =
        |ledger| Protocol::new(ledger).with_rules(|rules| rules.recovery = RecoveryRule::SendAgain);
    shortest_path_to(NOT_SENT_BLINDLY, &blind(applies_once()));
    shortest_path_to(APPLIED_ONCE, &blind(applies_again()));
}

#[test]
fn reported_absence_applies_batches_twice() {
    let trusted =
        Protocol::new(applies_again()).with_rules(|rules| rules.absence = AbsenceRule::Reported);
    shortest_path_to(APPLIED_ONCE, &trusted);
}

#[test]
fn takeover_after_idle_expiry_overtakes_a_healthy_sender() {
    let after_idle_expiry = Protocol::new(applies_once())
        .with_rules(|rules| rules.takeover = TakeoverRule::AfterIdleExpiry);
    shortest_path_to(NOT_SENT_TOO_EARLY, &after_idle_expiry);
    shortest_path_to(TRUE_RECORD, &after_idle_expiry);
}

#[test]
fn marking_after_idle_expiry_sends_past_full_expiry() {
    let after_idle_expiry = Protocol::new(applies_once())
        .with_rules(|rules| rules.mark = MarkRule::OwnerBeforeFullExpiry);
    shortest_path_to(NOT_SENT_TOO_EARLY, &after_idle_expiry);
    shortest_path_to(TRUE_RECORD, &after_idle_expiry);
}

#[test]
fn without_a_new_epoch_a_service_has_two_owners() {
    let unraised =
        Protocol::new(applies_once()).with_rules(|rules| rules.claim_raises_epoch = false);
    shortest_path_to(ONE_OWNER, &unraised);
}

#[test]
fn marking_without_a_claim_blocks_the_service() {
    let unclaimed =
        Protocol::new(applies_once()).with_rules(|rules| rules.mark = MarkRule::FormerOwner);
    shortest_path_to(NO_DEADLOCK, &unclaimed);
}

#[test]
fn absence_observed_by_another_instance_is_not_enough() {
    let observed = Protocol::new(applies_again())
        .with_pauses()
        .with_rules(|rules| rules.absence = AbsenceRule::Observed);
    shortest_path_to(APPLIED_ONCE, &observed);
}

#[test]
fn wait_from_the_mark_is_over_before_a_paused_instance_sends() {
    let too_soon = Protocol::new(applies_again())
        .with_pauses()
        .with_rules(|rules| rules.wait = WaitRule::FromMark);
    shortest_path_to(APPLIED_ONCE, &too_soon);
}

#[test]
fn forgotten_invalidity_and_a_pause_falsify_the_record() {
    shortest_path_to(TRUE_RECORD, &Protocol::new(applies_once()).with_pauses());
}

#[test]
fn waits_by_the_time_of_day_follow_its_jumps() {
    let by_time_of_day = |ledger| {
        Protocol::new(ledger)
            .with_clock_jumps(1)
            .with_rules(|rules| rules.clock = ClockRule::TimeOfDay)
    };
    shortest_path_to(APPLIED_ONCE, &by_time_of_day(applies_again()));
    shortest_path_to(IN_ORDER, &by_time_of_day(applies_again()));
    shortest_path_to(NOT_SENT_TOO_EARLY, &by_time_of_day(applies_once()));
    shortest_path_to(NO_DEADLOCK, &by_time_of_day(applies_once()));
}

#[test]
fn without_ledger_identity_a_stray_instance_takes_services() {
    let unchecked = |ledger| {
        Protocol::new(ledger).with_stray().with_rules(|rules| rules.claim_requires_identity = false)
    };
    shortest_path_to(RIGHT_LEDGER, &unchecked(applies_once()));
    shortest_path_to(TRUE_RECORD, &unchecked(applies_once()));
    shortest_path_to(APPLIED_ONCE, &unchecked(applies_again()));
}

#[test]
fn nodes_in_turn_end_batches_as_invalid() {
    let in_turn = Protocol::new(applies_once()).with_follower().with_rules(|rules| {
        rules.node = NodeRule::InTurn;
        rules.invalid_asks_other_nodes = false;
    });
    shortest_path_to(NOT_INVALID_BY_LAG, &in_turn);
}

#[test]
fn invalid_batch_is_applied_by_an_attempt_that_lingers() {
    let at_once = Protocol::new(lingering())
        .with_faults(2, 2)
        .with_rules(|rules| rules.invalid_is_final_after = Duration::ZERO);
    shortest_path_to(TRUE_RECORD, &at_once);
    shortest_path_to(IN_ORDER, &at_once);
}

#[test]
fn batches_of_a_restored_database_are_applied_twice() {
    for rule in [RestoreRule::Nothing, RestoreRule::Heads] {
        let sent_again = Protocol::new(applies_again())
            .with_size(1, &[2])
            .with_faults(0, 1)
            .with_database_that_goes_back()
            .with_rules(|rules| rules.restore = rule);
        shortest_path_to(APPLIED_ONCE, &sent_again);
    }
}

#[test]
fn epochs_of_a_restored_database_are_used_again() {
    let kept = Protocol::new(applies_once())
        .with_size(2, &[1])
        .with_faults(1, 1)
        .with_database_that_goes_back()
        .with_rules(|rules| rules.restore_raises_epochs = false);
    shortest_path_to(ONE_OWNER, &kept);
}

#[test]
fn lost_invalidity_of_a_restored_database_reverses_the_order() {
    let lost = Protocol::new(applies_once()).with_database_that_goes_back().with_faults(0, 2);
    shortest_path_to(IN_ORDER, &lost);
}
