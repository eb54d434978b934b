//! An instance fails or is late between any two steps: claiming a service, taking a batch, sending,
//! recording, renewing. Another instance takes over, and late writes of the first change nothing
//! unless they prove a commit.

use grid_batch_core::batches::{BatchState, ChangeOutcome, LedgerStatus, Stale};
use grid_batch_core::claims::ClaimKeeper;
use grid_batch_core::evidence::Evidence;
use grid_batch_core::ledger::Outcome;
use grid_batch_core::queue::{RoundStore, TakenBatch};
use grid_batch_store::ClaimStore;

use super::fixture::ClaimExt;
use crate::fixture::{Database, StoreExt, batch, id, on_both, service};

on_both! {
    failure_before_claim_lets_another_instance_claim,
    failure_after_claim_is_taken_over_past_idle_expiry,
    failure_before_taking_batch_sends_nothing,
    failure_after_taking_batch_is_in_doubt_past_full_expiry,
    submission_that_arrived_is_found_by_next_owner,
    submission_never_sent_is_retried_only_with_evidence,
    unrecorded_status_is_queried_again,
    failure_after_outcome_is_taken_over_past_idle_expiry,
    late_results_of_former_owner_count_only_as_proof,
    late_renewal_keeps_what_was_not_taken_over,
    renewal_past_full_expiry_keeps_nothing,
}

/// Two instances, the first of which claims the service `a::b`, which has two batches.
fn claimed(db: &Database) -> [ClaimStore; 2] {
    let instances = [db.instance(), db.instance()];
    instances[0].store().add_all(&[batch("a::b", 1), batch("a::b", 2)]);
    assert_eq!(instances[0].take_all(), ["a::b"]);
    instances
}

/// The same; the first instance has also taken the first batch.
fn with_batch_taken(db: &Database) -> ([ClaimStore; 2], TakenBatch) {
    let instances = claimed(db);
    let taken = instances[0].take_batch("a::b");
    (instances, taken)
}

fn is_stale(recorded: ChangeOutcome) -> bool {
    matches!(recorded, ChangeOutcome::Stale(Stale::Epoch { .. }))
}

fn failure_before_claim_lets_another_instance_claim(db: &Database) {
    let [late, other] = [db.instance(), db.instance()];
    late.store().add_all(&[batch("a::b", 1)]);
    assert_eq!(other.take_all(), ["a::b"]);
    assert!(late.take_all().is_empty());
    assert!(late.takes_nothing_of("a::b"));
}

fn failure_after_claim_is_taken_over_past_idle_expiry(db: &Database) {
    let [late, other] = claimed(db);
    assert!(other.take_all().is_empty());
    db.pass_idle_expiry(&late);
    assert_eq!(other.take_all(), ["a::b"]);
    assert!(late.ready_services(None, 9).unwrap().is_empty());
}

fn failure_before_taking_batch_sends_nothing(db: &Database) {
    let [late, other] = claimed(db);
    let queue = late.ready_services(None, 9).unwrap();
    db.pass_idle_expiry(&late);
    other.take_all();
    db.renew_lease(&late);
    assert!(late.take_next(&queue).unwrap().is_empty());
    assert_eq!(other.take_batch("a::b").batch_id, id(1));
}

fn failure_after_taking_batch_is_in_doubt_past_full_expiry(db: &Database) {
    let ([late, other], taken) = with_batch_taken(db);
    db.pass_idle_expiry(&late);
    assert!(other.take_all().is_empty(), "the owner may still be sending");
    db.pass_full_expiry(&late);
    assert_eq!(other.take(9).unwrap().in_doubt, [(service("a::b"), id(1))]);
    assert!(other.takes_nothing_of("a::b"));
    // The former owner continues before it has sent the batch, and gives it back too late.
    late.give_back(std::slice::from_ref(&taken)).unwrap();
    assert_eq!(db.state("a::b", 1), BatchState::InDoubt);
}

fn submission_that_arrived_is_found_by_next_owner(db: &Database) {
    let ([late, other], taken) = with_batch_taken(db);
    db.pass_full_expiry(&late);
    let epoch = other.take(9).unwrap().claims[0].epoch;
    let present = TakenBatch { epoch, ..taken.clone() };
    other.store().evidence(&present, Evidence::Present);
    other.store().status(&present, LedgerStatus::Committed);
    assert!(matches!(late.store().outcome(&taken, Outcome::Ambiguous), ChangeOutcome::Stale(_)));
    assert_eq!(db.state("a::b", 1), BatchState::Committed);
    assert_eq!(other.take_batch("a::b").batch_id, id(2));
}

fn submission_never_sent_is_retried_only_with_evidence(db: &Database) {
    let ([late, other], taken) = with_batch_taken(db);
    db.pass_full_expiry(&late);
    let epoch = other.take(9).unwrap().claims[0].epoch;
    // Only the former owner knows that the batch was never sent, but its report is stale.
    assert!(is_stale(late.store().outcome(&taken, Outcome::NotSent)));
    assert!(other.takes_nothing_of("a::b"));
    other.store().evidence(&TakenBatch { epoch, ..taken }, Evidence::Absent);
    let again = other.take_batch("a::b");
    assert_eq!((again.batch_id, again.attempt), (id(1), 2));
}

fn unrecorded_status_is_queried_again(db: &Database) {
    let ([late, other], taken) = with_batch_taken(db);
    db.pass_full_expiry(&late);
    let epoch = other.take(9).unwrap().claims[0].epoch;
    for outcome in [Outcome::Accepted, Outcome::Busy, Outcome::Rejected] {
        assert!(is_stale(late.store().outcome(&taken, outcome)));
    }
    other.store().status(&TakenBatch { epoch, ..taken }, LedgerStatus::Pending);
    assert_eq!(db.state("a::b", 1), BatchState::Pending);
}

fn failure_after_outcome_is_taken_over_past_idle_expiry(db: &Database) {
    let ([late, other], taken) = with_batch_taken(db);
    late.store().outcome(&taken, Outcome::Accepted);
    db.pass_idle_expiry(&late);
    let takeover = other.take(9).unwrap();
    assert!(takeover.in_doubt.is_empty());
    assert_eq!(db.state("a::b", 1), BatchState::Pending);
    // The outcome arrives again, and the commit twice; the second commit changes nothing.
    assert!(is_stale(late.store().outcome(&taken, Outcome::Accepted)));
    let done =
        other.store().status(&TakenBatch { epoch: 2, ..taken.clone() }, LedgerStatus::Committed);
    assert_eq!(done, ChangeOutcome::Applied { state: BatchState::Committed, next_waits: true });
    assert!(matches!(
        late.store().status(&taken, LedgerStatus::Committed),
        ChangeOutcome::Stale(_)
    ));
    assert_eq!(db.state("a::b", 2), BatchState::New);
}

fn late_results_of_former_owner_count_only_as_proof(db: &Database) {
    let ([late, other], taken) = with_batch_taken(db);
    late.store().outcome(&taken, Outcome::Accepted);
    db.pass_idle_expiry(&late);
    other.take_all();
    for status in [LedgerStatus::Invalid, LedgerStatus::Valid, LedgerStatus::NotReported] {
        assert!(is_stale(late.store().status(&taken, status)));
    }
    assert!(is_stale(late.store().evidence(&taken, Evidence::Absent)));
    assert_eq!(db.state("a::b", 1), BatchState::Pending);
    let done = late.store().evidence(&taken, Evidence::Committed);
    assert_eq!(done, ChangeOutcome::Applied { state: BatchState::Committed, next_waits: true });
}

fn late_renewal_keeps_what_was_not_taken_over(db: &Database) {
    let ([late, other], taken) = with_batch_taken(db);
    late.store().add_all(&[batch("c::d", 3)]);
    late.take_all();
    db.pass_idle_expiry(&late);
    assert_eq!(other.take_all(), ["c::d"]);
    assert!(late.renew().unwrap());
    assert!(other.take_all().is_empty());
    late.store().outcome(&taken, Outcome::Accepted);
    assert_eq!(db.state("a::b", 1), BatchState::Pending);
    assert!(late.takes_nothing_of("c::d"));
}

fn renewal_past_full_expiry_keeps_nothing(db: &Database) {
    let ([late, other], _) = with_batch_taken(db);
    db.pass_full_expiry(&late);
    other.take_all();
    assert!(!late.renew().unwrap());
    assert!(late.ready_services(None, 9).unwrap().is_empty());
}
