//! An instance that fails or is late between any two steps of its way: from claiming a service over
//! marking, sending and recording to renewing. Another takes over, and what the first still writes
//! changes nothing, unless it proves a commit.

use grid_batch_core::{
    BatchState, ChangeOutcome, Evidence, LedgerStatus, Outcome, Stale, TakenBatch,
};
use grid_batch_store::ClaimStore;

use super::fixture::ClaimExt;
use crate::fixture::{Database, StoreExt, batch, id, on_both, service};

on_both! {
    before_the_claim_another_has_it,
    after_the_claim_another_has_it_past_the_first_expiry,
    with_a_queue_that_was_read_and_nothing_marked_nothing_is_sent,
    once_marked_another_has_it_past_the_second_expiry_and_asks_first,
    a_post_that_arrived_is_found_by_the_next_owner,
    a_post_that_never_left_is_sent_again_only_with_evidence,
    an_answer_that_was_not_recorded_is_found_out_again,
    once_recorded_another_follows_the_batch_past_the_first_expiry,
    what_the_late_owner_learns_counts_only_as_proof,
    a_renewal_that_is_late_finds_what_was_not_taken,
    a_renewal_that_is_too_late_finds_nothing,
}

/// The service `a::b` with two batches, which the first instance claims.
fn claimed(db: &Database) -> [ClaimStore; 2] {
    let instances = [db.instance(), db.instance()];
    instances[0].store().add_all(&[batch("a::b", 1), batch("a::b", 2)]);
    assert_eq!(instances[0].take_all(), ["a::b"]);
    instances
}

/// The same, and the first batch is with a submitter of the first.
fn marked(db: &Database) -> ([ClaimStore; 2], TakenBatch) {
    let instances = claimed(db);
    let taken = instances[0].mark("a::b");
    (instances, taken)
}

fn is_stale(recorded: ChangeOutcome) -> bool {
    matches!(recorded, ChangeOutcome::Stale(Stale::Epoch { .. }))
}

fn before_the_claim_another_has_it(db: &Database) {
    let [late, other] = [db.instance(), db.instance()];
    late.store().add_all(&[batch("a::b", 1)]);
    assert_eq!(other.take_all(), ["a::b"]);
    assert!(late.take_all().is_empty());
    assert!(late.marks_nothing_of("a::b"));
}

fn after_the_claim_another_has_it_past_the_first_expiry(db: &Database) {
    let [late, other] = claimed(db);
    assert!(other.take_all().is_empty());
    db.let_lapse(&late);
    assert_eq!(other.take_all(), ["a::b"]);
    assert!(late.ready_services(None, 9).unwrap().is_empty());
}

fn with_a_queue_that_was_read_and_nothing_marked_nothing_is_sent(db: &Database) {
    let [late, other] = claimed(db);
    let queue = late.ready_services(None, 9).unwrap();
    db.let_lapse(&late);
    other.take_all();
    db.let_live(&late);
    assert!(late.take_round(&queue).unwrap().is_empty());
    assert_eq!(other.mark("a::b").batch_id, id(1));
}

fn once_marked_another_has_it_past_the_second_expiry_and_asks_first(db: &Database) {
    let ([late, other], taken) = marked(db);
    db.let_lapse(&late);
    assert!(other.take_all().is_empty(), "it may be sending");
    db.let_die(&late);
    assert_eq!(other.take(9).unwrap().in_doubt, [(service("a::b"), id(1))]);
    assert!(other.marks_nothing_of("a::b"));
    // It wakes before it has sent, and gives back what it has: too late.
    late.give_back(std::slice::from_ref(&taken)).unwrap();
    assert_eq!(db.state("a::b", 1), BatchState::InDoubt);
}

fn a_post_that_arrived_is_found_by_the_next_owner(db: &Database) {
    let ([late, other], taken) = marked(db);
    db.let_die(&late);
    let epoch = other.take(9).unwrap().claims[0].epoch;
    let present = TakenBatch { epoch, ..taken.clone() };
    other.store().evidence(&present, Evidence::Present);
    other.store().status(&present, LedgerStatus::Committed);
    assert!(matches!(late.store().outcome(&taken, Outcome::Ambiguous), ChangeOutcome::Stale(_)));
    assert_eq!(db.state("a::b", 1), BatchState::Committed);
    assert_eq!(other.mark("a::b").batch_id, id(2));
}

fn a_post_that_never_left_is_sent_again_only_with_evidence(db: &Database) {
    let ([late, other], taken) = marked(db);
    db.let_die(&late);
    let epoch = other.take(9).unwrap().claims[0].epoch;
    // That it was never sent, only its sender knows; and that one is not believed any more.
    assert!(is_stale(late.store().outcome(&taken, Outcome::NotSent)));
    assert!(other.marks_nothing_of("a::b"));
    other.store().evidence(&TakenBatch { epoch, ..taken }, Evidence::Absent);
    let again = other.mark("a::b");
    assert_eq!((again.batch_id, again.attempt), (id(1), 2));
}

fn an_answer_that_was_not_recorded_is_found_out_again(db: &Database) {
    let ([late, other], taken) = marked(db);
    db.let_die(&late);
    let epoch = other.take(9).unwrap().claims[0].epoch;
    for outcome in [Outcome::Accepted, Outcome::Busy, Outcome::Rejected] {
        assert!(is_stale(late.store().outcome(&taken, outcome)));
    }
    other.store().status(&TakenBatch { epoch, ..taken }, LedgerStatus::Pending);
    assert_eq!(db.state("a::b", 1), BatchState::Pending);
}

fn once_recorded_another_follows_the_batch_past_the_first_expiry(db: &Database) {
    let ([late, other], taken) = marked(db);
    late.store().outcome(&taken, Outcome::Accepted);
    db.let_lapse(&late);
    let takeover = other.take(9).unwrap();
    assert!(takeover.in_doubt.is_empty());
    assert_eq!(db.state("a::b", 1), BatchState::Pending);
    // The outcome once more, and the commit twice: the second time nothing changes.
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

fn what_the_late_owner_learns_counts_only_as_proof(db: &Database) {
    let ([late, other], taken) = marked(db);
    late.store().outcome(&taken, Outcome::Accepted);
    db.let_lapse(&late);
    other.take_all();
    for status in [LedgerStatus::Invalid, LedgerStatus::Valid, LedgerStatus::NotReported] {
        assert!(is_stale(late.store().status(&taken, status)));
    }
    assert!(is_stale(late.store().evidence(&taken, Evidence::Absent)));
    assert_eq!(db.state("a::b", 1), BatchState::Pending);
    let done = late.store().evidence(&taken, Evidence::Committed);
    assert_eq!(done, ChangeOutcome::Applied { state: BatchState::Committed, next_waits: true });
}

fn a_renewal_that_is_late_finds_what_was_not_taken(db: &Database) {
    let ([late, other], taken) = marked(db);
    late.store().add_all(&[batch("c::d", 3)]);
    late.take_all();
    db.let_lapse(&late);
    assert_eq!(other.take_all(), ["c::d"]);
    assert!(late.renew().unwrap());
    assert!(other.take_all().is_empty());
    late.store().outcome(&taken, Outcome::Accepted);
    assert_eq!(db.state("a::b", 1), BatchState::Pending);
    assert!(late.marks_nothing_of("c::d"));
}

fn a_renewal_that_is_too_late_finds_nothing(db: &Database) {
    let ([late, other], _) = marked(db);
    db.let_die(&late);
    other.take_all();
    assert!(!late.renew().unwrap());
    assert!(late.ready_services(None, 9).unwrap().is_empty());
}
