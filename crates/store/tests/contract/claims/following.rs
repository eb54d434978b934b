use std::time::Duration;

use grid_batch_core::{
    BatchState, BatchUpdater, Evidence, LedgerStatus, Outcome, PendingBatchStore, PollPace,
    Resolution, StatusReport, UnresolvedBatchStore,
};
use grid_batch_store::{ClaimStore, MonitorStore};

use super::fixture::ClaimExt;
use crate::fixture::{Database, StoreExt, batch, id, on_both};

on_both! {
    only_what_is_claimed_is_asked_for,
    an_answer_to_a_question_of_an_owner_before_changes_nothing,
    an_answer_whose_question_is_forgotten_counts_only_as_proof,
    evidence_of_an_owner_before_counts_only_as_proof,
    what_was_in_doubt_is_asked_for_first,
}

fn monitor(instance: &ClaimStore) -> MonitorStore {
    MonitorStore::new(instance.clone(), |_, _| ())
}

fn report(number: u64, status: LedgerStatus) -> [StatusReport; 1] {
    [StatusReport { batch_id: id(number).to_string(), status, receipts: Vec::new() }]
}

/// Two instances; the first has services `s::1`, `s::2`, ... whose batches the ledger has.
fn accepted(db: &Database, count: u64) -> [ClaimStore; 2] {
    let instances = [db.instance(), db.instance()];
    for number in 1..=count {
        let name = format!("s::{number}");
        instances[0].store().add_all(&[batch(&name, number)]);
        instances[0].take_all();
        instances[0].store().outcome(&instances[0].mark(&name), Outcome::Accepted);
    }
    instances
}

fn change_hands(db: &Database, [from, to]: &[ClaimStore; 2]) {
    db.let_die(from);
    to.take_all();
}

fn only_what_is_claimed_is_asked_for(db: &Database) {
    let instances = accepted(db, 2);
    let [owner, other] = [0, 1].map(|at: usize| monitor(&instances[at]));
    let second = Duration::from_secs(1);
    let pace = PollPace { interval: second, longest: second };
    let services = ["s::1", "s::2"].map(str::to_owned);
    let ids = [id(1).to_string()];
    let now = db.later(1);
    let asks = |monitor: &MonitorStore| {
        let doubts = monitor.get_unresolved_batches("s::1", &ids).unwrap();
        [
            monitor.get_pending_batch_ids(9).unwrap().len(),
            monitor.get_due_batch_ids(now, pace, 9).unwrap().len(),
            monitor.get_pending_batch_ids_of(&services, 9).unwrap().len(),
            doubts.len(),
        ]
    };
    assert_eq!((asks(&owner), asks(&other)), ([2, 2, 2, 1], [0; 4]));
    change_hands(db, &instances);
    assert_eq!((asks(&owner), asks(&other)), ([0; 4], [2, 2, 2, 1]));
}

fn an_answer_to_a_question_of_an_owner_before_changes_nothing(db: &Database) {
    let instances = accepted(db, 2);
    let before = monitor(&instances[0]);
    before.get_pending_batch_ids(9).unwrap();
    change_hands(db, &instances);
    before.update_batch_statuses("s::1", &report(1, LedgerStatus::Invalid)).unwrap();
    before.update_batch_statuses("s::2", &report(2, LedgerStatus::Committed)).unwrap();
    assert_eq!(db.state("s::1", 1), BatchState::Pending);
    assert_eq!(db.state("s::2", 2), BatchState::Committed, "proof counts whoever brings it");
}

fn an_answer_whose_question_is_forgotten_counts_only_as_proof(db: &Database) {
    let [owner, _] = accepted(db, 2);
    let monitor = monitor(&owner);
    monitor.update_batch_statuses("s::1", &report(1, LedgerStatus::Invalid)).unwrap();
    monitor.update_batch_statuses("s::2", &report(2, LedgerStatus::Committed)).unwrap();
    assert_eq!(db.state("s::1", 1), BatchState::Pending);
    assert_eq!(db.state("s::2", 2), BatchState::Committed);

    monitor.get_pending_batch_ids(9).unwrap();
    monitor.update_batch_statuses("s::1", &report(1, LedgerStatus::Invalid)).unwrap();
    assert_eq!(db.state("s::1", 1), BatchState::Invalid);
}

fn evidence_of_an_owner_before_counts_only_as_proof(db: &Database) {
    let instances = accepted(db, 3);
    let before = monitor(&instances[0]);
    let resolutions: Vec<_> = [
        Resolution::Evidence(Evidence::Absent),
        Resolution::Evidence(Evidence::Committed),
        Resolution::Hold("nobody knows".to_owned()),
    ]
    .into_iter()
    .zip(1..)
    .map(|(resolution, number)| {
        let ids = [id(number).to_string()];
        (
            before.get_unresolved_batches(&format!("s::{number}"), &ids).unwrap().remove(0),
            resolution,
        )
    })
    .collect();
    change_hands(db, &instances);
    before.resolve(&resolutions).unwrap();
    let states = [1, 2, 3].map(|number| db.state(&format!("s::{number}"), number));
    assert_eq!(states, [BatchState::Pending, BatchState::Committed, BatchState::Pending]);
    assert!(instances[1].store().held_batches(None, 9).unwrap().is_empty());
}

fn what_was_in_doubt_is_asked_for_first(db: &Database) {
    let instances = accepted(db, 2);
    let [one, _] = &instances;
    monitor(one).mark_checked(&monitor(one).get_pending_batch_ids(9).unwrap()).unwrap();
    one.store().add_all(&[batch("s::3", 3)]);
    one.take_all();
    one.mark("s::3");
    change_hands(db, &instances);
    let due = monitor(&instances[1]).get_pending_batch_ids(1).unwrap();
    assert_eq!(due.iter().map(|batch| batch.batch_id).collect::<Vec<_>>(), [id(3)]);
    assert_eq!(due[0].epoch, 2);
}
