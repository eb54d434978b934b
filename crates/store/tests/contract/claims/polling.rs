use std::time::Duration;

use grid_batch_core::batches::{BatchState, LedgerStatus, StatusReport};
use grid_batch_core::events::Recorded;
use grid_batch_core::evidence::{Evidence, LedgerQuestionStore, Resolution};
use grid_batch_core::ledger::Outcome;
use grid_batch_core::polling::{BatchUpdater, PendingBatchStore, PollPace};
use grid_batch_store::{ClaimStore, MonitorStore};

use super::fixture::ClaimExt;
use crate::fixture::{Database, StoreExt, batch, id, on_both};

on_both! {
    only_batches_of_claimed_services_are_polled,
    status_queried_by_former_owner_counts_only_as_proof,
    status_without_known_query_counts_only_as_proof,
    evidence_of_former_owner_counts_only_as_proof,
    batch_in_doubt_after_takeover_is_polled_first,
}

fn monitor(instance: &ClaimStore) -> MonitorStore {
    MonitorStore::new(instance.clone(), |_: Recorded<'_>| ())
}

fn report(number: u64, status: LedgerStatus) -> [StatusReport; 1] {
    [StatusReport { batch_id: id(number).to_string(), status, receipts: Vec::new() }]
}

/// Two instances; the first claims `s::1`, `s::2`, ..., each with an accepted batch.
fn accepted(db: &Database, count: u64) -> [ClaimStore; 2] {
    let instances = [db.instance(), db.instance()];
    for number in 1..=count {
        let name = format!("s::{number}");
        instances[0].store().add_all(&[batch(&name, number)]);
        instances[0].take_all();
        instances[0].store().outcome(&instances[0].take_batch(&name), Outcome::Accepted);
    }
    instances
}

fn change_hands(db: &Database, [from, to]: &[ClaimStore; 2]) {
    db.pass_full_expiry(from);
    to.take_all();
}

fn only_batches_of_claimed_services_are_polled(db: &Database) {
    let instances = accepted(db, 2);
    let [owner, other] = [0, 1].map(|at: usize| monitor(&instances[at]));
    let second = Duration::from_secs(1);
    let pace = PollPace { interval: second, longest: second };
    let services = ["s::1", "s::2"].map(str::to_owned);
    let ids = [id(1).to_string()];
    let now = db.later(1);
    let asks = |monitor: &MonitorStore| {
        let unresolved = monitor.get_unresolved_batches("s::1", &ids).unwrap();
        [
            monitor.get_pending_batch_ids(9).unwrap().len(),
            monitor.get_due_batch_ids(now, pace, 9).unwrap().unwrap().len(),
            monitor.get_pending_batch_ids_of(&services, 9).unwrap().unwrap().len(),
            unresolved.len(),
        ]
    };
    assert_eq!((asks(&owner), asks(&other)), ([2, 2, 2, 1], [0; 4]));
    change_hands(db, &instances);
    assert_eq!((asks(&owner), asks(&other)), ([0; 4], [2, 2, 2, 1]));
}

fn status_queried_by_former_owner_counts_only_as_proof(db: &Database) {
    let instances = accepted(db, 2);
    let before = monitor(&instances[0]);
    before.get_pending_batch_ids(9).unwrap();
    change_hands(db, &instances);
    before.update_batch_statuses("s::1", &report(1, LedgerStatus::Invalid)).unwrap();
    before.update_batch_statuses("s::2", &report(2, LedgerStatus::Committed)).unwrap();
    assert_eq!(db.state("s::1", 1), BatchState::Pending);
    assert_eq!(db.state("s::2", 2), BatchState::Committed, "proof counts from any instance");
}

fn status_without_known_query_counts_only_as_proof(db: &Database) {
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

fn evidence_of_former_owner_counts_only_as_proof(db: &Database) {
    let instances = accepted(db, 3);
    let before = monitor(&instances[0]);
    let resolutions: Vec<_> = [
        Resolution::Evidence(Evidence::Absent),
        Resolution::Evidence(Evidence::Committed),
        Resolution::Hold("no evidence".to_owned()),
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

fn batch_in_doubt_after_takeover_is_polled_first(db: &Database) {
    let instances = accepted(db, 2);
    let [one, _] = &instances;
    monitor(one).mark_checked(&monitor(one).get_pending_batch_ids(9).unwrap()).unwrap();
    one.store().add_all(&[batch("s::3", 3)]);
    one.take_all();
    one.take_batch("s::3");
    change_hands(db, &instances);
    let due = monitor(&instances[1]).get_pending_batch_ids(1).unwrap();
    assert_eq!(due.iter().map(|batch| batch.batch_id).collect::<Vec<_>>(), [id(3)]);
    assert_eq!(due[0].epoch, 2);
}
