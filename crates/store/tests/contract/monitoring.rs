use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use grid_batch_core::BatchError;
use grid_batch_core::batches::{
    BatchState, Change, ChangeOutcome, Deadline, Decision, Event, LedgerStatus, NewBatch, Receipt,
    StatusReport,
};
use grid_batch_core::events::Recorded;
use grid_batch_core::evidence::{Evidence, LedgerQuestionStore, Resolution, UnresolvedBatch};
use grid_batch_core::ledger::{AttemptId, Outcome};
use grid_batch_core::polling::{BatchUpdater, PendingBatchStore, PollPace};
use grid_batch_core::queries::{BatchFilter, BatchQueryStore};
use grid_batch_core::queue::TakenBatch;
use grid_batch_store::{MonitorStore, PendingBatch};

use crate::fixture::{
    Database, StoreExt, TestStore, batch, change_of, happened, id, on_both, service,
};

on_both! {
    pending_batches_are_selected_by_pace_and_service,
    statuses_are_stored_with_receipts,
    report_with_malformed_id_changes_nothing,
    status_groups_are_one_commit,
    resolutions_are_one_commit,
    late_status_changes_nothing_and_is_no_error,
    status_of_an_earlier_attempt_changes_nothing,
    commit_of_an_earlier_attempt_counts,
    unqueried_status_only_proves_a_commit,
    abandoned_query_does_not_affect_the_next,
    unresolved_batch_has_what_evidence_search_needs,
    unresolved_batch_names_its_shared_transactions,
    unresolved_batch_has_the_last_error,
    unresolved_batch_has_the_time_of_its_state,
    only_polled_batches_are_unresolved,
    resolutions_are_recorded_independently,
    only_proof_of_commit_counts_in_another_epoch,
    holds_are_reported_to_the_subscriber,
    deadline_stays_with_the_batch_until_it_expires,
}

fn deadline_stays_with_the_batch_until_it_expires(db: &Database) {
    let store = db.open();
    for deadline in [Deadline::Height(7), Deadline::Time(db.now())].map(Some) {
        let number = store.count(&BatchFilter::default()).unwrap() + 1;
        let next = number + 1;
        store.add_all(&[NewBatch { deadline, ..batch("s::1", number) }, batch("s::1", next)]);
        let details = |number| store.details(&service("s::1"), &id(number)).unwrap().unwrap();
        assert_eq!((details(number).deadline, details(next).deadline), (deadline, None));
        let taken = store.take_one("s::1");
        assert_eq!(taken.deadline, deadline);
        store.outcome(&taken, Outcome::Ambiguous);

        let (monitor, _) = monitor(&store);
        let ids = [id(number).to_string()];
        let unresolved = monitor.get_unresolved_batches("s::1", &ids).unwrap().remove(0);
        assert_eq!(unresolved.deadline, deadline);
        let expired = Resolution::Invalid(Evidence::Expired, "expired: it is late".to_owned());
        monitor.resolve(&[(unresolved, expired)]).unwrap();
        let ended = details(number);
        assert_eq!(ended.batch.progress.state, BatchState::Invalid);
        assert_eq!(ended.receipts[0].error_message, "expired: it is late");
        let taken = store.take_one("s::1");
        assert_eq!((taken.batch_id, taken.deadline), (id(next), None));
        store.outcome(&taken, Outcome::Committed);
    }
}

type ReportedChanges = Arc<Mutex<Vec<(Change, ChangeOutcome)>>>;

fn monitor(store: &TestStore) -> (MonitorStore, ReportedChanges) {
    let reported = ReportedChanges::default();
    let sink = Arc::clone(&reported);
    let subscriber = move |entry: Recorded<'_>| sink.lock().unwrap().push(change_of(entry));
    let monitor = MonitorStore::new(store.worker().clone(), subscriber);
    (monitor, reported)
}

fn recorded(reported: &ReportedChanges) -> Vec<ChangeOutcome> {
    reported.lock().unwrap().drain(..).map(|(_, recorded)| recorded).collect()
}

/// Services `s::1`, `s::2`, ..., each with an accepted batch of its number.
fn accepted(store: &TestStore, count: u64) -> Vec<TakenBatch> {
    (1..=count)
        .map(|number| {
            let name = format!("s::{number}");
            store.add_all(&[batch(&name, number)]);
            let taken = store.take_one(&name);
            store.outcome(&taken, Outcome::Accepted);
            taken
        })
        .collect()
}

fn report(number: u64, status: LedgerStatus) -> StatusReport {
    StatusReport { batch_id: id(number).to_string(), status, receipts: Vec::new() }
}

fn state(store: &TestStore, number: u64) -> BatchState {
    store.one(&format!("s::{number}"), number).progress.state
}

fn unresolved(monitor: &MonitorStore, number: u64) -> UnresolvedBatch {
    let ids = [id(number).to_string()];
    let [unresolved] =
        monitor.get_unresolved_batches(&format!("s::{number}"), &ids).unwrap().try_into().unwrap();
    unresolved
}

/// Takes the batch again after an absent attempt; the new attempt is accepted.
fn send_again(store: &TestStore, taken: &TakenBatch) -> TakenBatch {
    store.evidence(taken, Evidence::Absent);
    let again = store.take_one(taken.service_id.as_str());
    store.outcome(&again, Outcome::Accepted);
    again
}

fn done(state: BatchState) -> ChangeOutcome {
    ChangeOutcome::Applied { state, next_waits: false }
}

fn pending_batches_are_selected_by_pace_and_service(db: &Database) {
    let store = db.open();
    let taken = accepted(&store, 3);
    db.later(1);
    store.status(&taken[0], LedgerStatus::Pending);
    let (monitor, reported) = monitor(&store);
    let numbers = |pending: Vec<PendingBatch>| -> Vec<_> {
        pending.into_iter().map(|batch| batch.batch_id).collect()
    };
    assert_eq!(numbers(monitor.get_pending_batch_ids(9).unwrap()), [2, 3, 1].map(id));
    assert_eq!(numbers(monitor.get_pending_batch_ids(1).unwrap()), [2].map(id));
    let second = Duration::from_secs(1);
    let pace = PollPace { interval: second, longest: second };
    let due = monitor.get_due_batch_ids(db.now(), pace, 9).unwrap().unwrap();
    assert_eq!(numbers(due.clone()), [2, 3].map(id));
    let of = ["s::1", "s::3"].map(str::to_owned);
    let of_services = monitor.get_pending_batch_ids_of(&of, 9).unwrap().unwrap();
    assert_eq!(numbers(of_services), [3, 1].map(id));

    db.later(1);
    monitor.mark_checked(&due).unwrap();
    assert_eq!(numbers(monitor.get_pending_batch_ids(9).unwrap()), [1, 2, 3].map(id));
    assert!(recorded(&reported).is_empty());
    let error = monitor.get_pending_batch_ids_of(&["no service".to_owned()], 9).unwrap_err();
    assert!(matches!(error, BatchError::InvalidAnswer(_)), "{error}");
}

fn statuses_are_stored_with_receipts(db: &Database) {
    let store = db.open();
    accepted(&store, 2);
    let (monitor, reported) = monitor(&store);
    monitor.get_pending_batch_ids(9).unwrap();
    let receipt = Receipt {
        transaction_id: Some(id(7)),
        error_message: "no such contract".to_owned(),
        error_data: Vec::new(),
    };
    let receipts = vec![receipt.clone()];
    let invalid = StatusReport { receipts, ..report(1, LedgerStatus::Invalid) };
    monitor.update_batch_statuses("s::1", &[invalid]).unwrap();
    // A batch of another service does not change.
    monitor.update_batch_statuses("s::1", &[report(2, LedgerStatus::Committed)]).unwrap();

    let details = store.details(&service("s::1"), &id(1)).unwrap().unwrap();
    assert_eq!(details.batch.progress.state, BatchState::Invalid);
    assert_eq!(details.receipts, [receipt]);
    assert_eq!(state(&store, 2), BatchState::Pending);
    assert_eq!(recorded(&reported), [done(BatchState::Invalid), ChangeOutcome::NotFound]);
}

fn report_with_malformed_id_changes_nothing(db: &Database) {
    let store = db.open();
    accepted(&store, 1);
    let (monitor, reported) = monitor(&store);
    let good = report(1, LedgerStatus::Committed);
    let bad = StatusReport { batch_id: "z/z".to_owned(), ..good.clone() };
    let error = monitor.update_batch_statuses("s::1", &[good.clone(), bad]).unwrap_err();
    assert!(matches!(error, BatchError::InvalidAnswer(_)), "{error}");
    assert!(monitor.update_batch_statuses("no service", &[good]).is_err());
    assert!(monitor.get_unresolved_batches("s::1", &["z/z".to_owned()]).is_err());
    assert_eq!(state(&store, 1), BatchState::Pending);
    assert!(recorded(&reported).is_empty());
}

/// Makes every later write to the lane of this service fail.
fn forbid(db: &Database, service: &str) {
    let sql = if db.is_postgres() {
        format!(
            "create function forbid() returns trigger language plpgsql as
                 'begin raise exception ''forbidden''; end';
             create trigger forbid before update on lanes for each row
                 when (new.service_id = '{service}') execute function forbid();"
        )
    } else {
        format!(
            "create trigger forbid before update on lanes
                 when new.service_id = '{service}'
                 begin select raise(abort, 'forbidden'); end;"
        )
    };
    db.execute(&sql).unwrap();
}

fn status_groups_are_one_commit(db: &Database) {
    let store = db.open();
    accepted(&store, 3);
    let (monitor, reported) = monitor(&store);
    monitor.get_pending_batch_ids(9).unwrap();
    let group = |number, status| (format!("s::{number}"), vec![report(number, status)]);
    monitor
        .update_groups(&[group(1, LedgerStatus::Committed), group(2, LedgerStatus::Valid)])
        .unwrap();
    assert_eq!(recorded(&reported), [done(BatchState::Committed), done(BatchState::Valid)]);

    forbid(db, "s::3");
    let groups = [group(2, LedgerStatus::Committed), group(3, LedgerStatus::Valid)];
    let error = monitor.update_groups(&groups).unwrap_err();
    assert!(error.to_string().contains("forbidden"), "{error}");
    assert_eq!(state(&store, 2), BatchState::Valid);
    assert!(recorded(&reported).is_empty());
}

fn resolutions_are_one_commit(db: &Database) {
    let store = db.open();
    accepted(&store, 2);
    let (monitor, reported) = monitor(&store);
    let resolutions = [1, 2]
        .map(|number| (unresolved(&monitor, number), Resolution::Hold("no evidence".to_owned())));
    forbid(db, "s::2");
    assert!(monitor.resolve(&resolutions).is_err());
    assert!(store.held_batches(None, 9).unwrap().is_empty());
    assert!(recorded(&reported).is_empty());
}

fn late_status_changes_nothing_and_is_no_error(db: &Database) {
    let store = db.open();
    let taken = accepted(&store, 2);
    let (monitor, reported) = monitor(&store);
    let unresolved_batches = [1, 2].map(|number| unresolved(&monitor, number));
    store.status(&taken[0], LedgerStatus::Committed);
    send_again(&store, &taken[1]);
    let before = [1, 2].map(|number| store.one(&format!("s::{number}"), number));

    monitor.update_batch_statuses("s::1", &[report(1, LedgerStatus::Invalid)]).unwrap();
    let resolutions = [
        Resolution::Evidence(Evidence::Absent),
        Resolution::Evidence(Evidence::Present),
        Resolution::Hold("no evidence".to_owned()),
    ];
    for resolution in resolutions {
        let late = unresolved_batches.clone().map(|unresolved| (unresolved, resolution.clone()));
        monitor.resolve(&late).unwrap();
    }
    assert_eq!([1, 2].map(|number| store.one(&format!("s::{number}"), number)), before);
    assert!(recorded(&reported).iter().all(|recorded| matches!(recorded, ChangeOutcome::Stale(_))));
}

fn status_of_an_earlier_attempt_changes_nothing(db: &Database) {
    let store = db.open();
    let first = accepted(&store, 1).remove(0);
    let (monitor, _) = monitor(&store);
    monitor.get_pending_batch_ids(9).unwrap();
    // While the query is in flight, an operator requests that the batch be sent again.
    store.hold(&first, "no evidence");
    store.decide(&first.service_id, &first.batch_id, first.attempt, Decision::Absent).unwrap();
    store.outcome(&store.take_one("s::1"), Outcome::Accepted);
    monitor.get_pending_batch_ids(9).unwrap();

    let invalid = [report(1, LedgerStatus::Invalid)];
    monitor.clone().update_batch_statuses("s::1", &invalid).unwrap();
    assert!(!store.one("s::1", 1).progress.invalid_reported);
    // The next answer is about the second attempt.
    monitor.get_pending_batch_ids(9).unwrap();
    monitor.update_batch_statuses("s::1", &invalid).unwrap();
    assert!(store.one("s::1", 1).progress.invalid_reported);
}

fn commit_of_an_earlier_attempt_counts(db: &Database) {
    let store = db.open();
    let first = accepted(&store, 1).remove(0);
    let (monitor, _) = monitor(&store);
    monitor.get_pending_batch_ids(9).unwrap();
    send_again(&store, &first);
    monitor.update_batch_statuses("s::1", &[report(1, LedgerStatus::Committed)]).unwrap();
    assert_eq!(state(&store, 1), BatchState::Committed);
}

fn unqueried_status_only_proves_a_commit(db: &Database) {
    let store = db.open();
    send_again(&store, &accepted(&store, 1)[0]);
    let (monitor, _) = monitor(&store);
    monitor.update_batch_statuses("s::1", &[report(1, LedgerStatus::Invalid)]).unwrap();
    assert_eq!(state(&store, 1), BatchState::Pending);
    monitor.update_batch_statuses("s::1", &[report(1, LedgerStatus::Committed)]).unwrap();
    assert_eq!(state(&store, 1), BatchState::Committed);
}

fn abandoned_query_does_not_affect_the_next(db: &Database) {
    let store = db.open();
    let first = accepted(&store, 1).remove(0);
    let (monitor, _) = monitor(&store);
    let asked = monitor.get_pending_batch_ids(9).unwrap();
    send_again(&store, &first);
    monitor.mark_checked(&asked).unwrap();
    monitor.get_pending_batch_ids_of(&["s::1".to_owned()], 9).unwrap();
    monitor.update_batch_statuses("s::1", &[report(1, LedgerStatus::Valid)]).unwrap();
    assert_eq!(state(&store, 1), BatchState::Valid);
}

fn unresolved_batch_has_what_evidence_search_needs(db: &Database) {
    let store = db.open();
    db.later(5);
    let taken = send_again(&store, &accepted(&store, 1)[0]);
    db.execute("update lanes set epoch = 7").unwrap();
    let (monitor, _) = monitor(&store);
    let attempt_id = AttemptId { attempt: 2, epoch: 7 };
    let expected = UnresolvedBatch {
        transaction_ids: batch("s::1", 1).transaction_ids,
        submitted_at: db.now(),
        since: db.now(),
        earlier_may_arrive: true,
        ..UnresolvedBatch::new(service("s::1"), id(1), attempt_id, BatchState::Pending)
    };
    assert_eq!(unresolved(&monitor, 1), expected);
    store.hold(&TakenBatch { epoch: 7, ..taken }, "no evidence");
    assert_eq!(unresolved(&monitor, 1), UnresolvedBatch { held: true, ..expected });
}

fn unresolved_batch_names_its_shared_transactions(db: &Database) {
    let store = db.open();
    let with = |name: &str, number: u64, transactions: [u64; 2]| NewBatch {
        transaction_ids: transactions.map(id).to_vec(),
        ..batch(name, number)
    };
    store.add_all(&[with("s::1", 1, [10, 20]), with("s::2", 3, [20, 30])]);
    store.outcome(&store.take_one("s::1"), Outcome::Rejected);
    store.add_all(&[with("s::1", 2, [30, 10])]);
    store.outcome(&store.take_one("s::1"), Outcome::Ambiguous);
    let (monitor, _) = monitor(&store);
    let batch = monitor.get_unresolved_batches("s::1", &[id(2).to_string()]).unwrap().remove(0);
    assert_eq!(batch.transaction_ids, [id(30), id(10)]);
    assert_eq!(batch.shared_transaction_ids, [id(10)]);
}

fn unresolved_batch_has_the_last_error(db: &Database) {
    let store = db.open();
    store.add_all(&[batch("s::1", 1)]);
    let taken = store.take_one("s::1");
    let event = Event::Outcome { attempt: 1, outcome: Outcome::Ambiguous };
    store.record_one(Change { error: Some("reset".to_owned()), ..happened(&taken, event) });
    let (monitor, _) = monitor(&store);
    assert_eq!(unresolved(&monitor, 1).last_error.as_deref(), Some("reset"));
}

fn unresolved_batch_has_the_time_of_its_state(db: &Database) {
    let store = db.open();
    store.add_all(&[batch("s::1", 1)]);
    let taken = store.take_one("s::1");
    let submitted_at = db.now();
    let (monitor, _) = monitor(&store);
    let in_doubt_since = db.later(5);
    store.outcome(&taken, Outcome::Ambiguous);
    // A report without news, or a hold, does not change the time.
    db.later(5);
    store.status(&taken, LedgerStatus::NotReported);
    store.hold(&taken, "no evidence");
    let batch = unresolved(&monitor, 1);
    assert_eq!((batch.submitted_at, batch.since), (submitted_at, in_doubt_since));

    let pending_since = db.later(5);
    store.evidence(&taken, Evidence::Present);
    assert_eq!(unresolved(&monitor, 1).since, pending_since);
}

fn only_polled_batches_are_unresolved(db: &Database) {
    let store = db.open();
    let (monitor, _) = monitor(&store);
    store.add_all(&[1, 2, 3].map(|number| batch("a::b", number)));
    store.commit_next("a::b");
    let ids = [1, 2, 3, 9].map(|number| id(number).to_string());
    assert!(monitor.get_unresolved_batches("a::b", &ids).unwrap().is_empty());
    store.outcome(&store.take_one("a::b"), Outcome::Ambiguous);
    let unresolved_batches = monitor.get_unresolved_batches("a::b", &ids).unwrap();
    assert_eq!(unresolved_batches.iter().map(|batch| batch.batch_id).collect::<Vec<_>>(), [id(2)]);
    assert!(monitor.get_unresolved_batches("c::d", &ids).unwrap().is_empty());
    assert!(monitor.get_unresolved_batches("a::b", &[]).unwrap().is_empty());
}

fn resolutions_are_recorded_independently(db: &Database) {
    let store = db.open();
    let taken = accepted(&store, 4);
    store.add_all(&[batch("s::1", 11)]);
    let (monitor, reported) = monitor(&store);
    let resolutions = [
        Resolution::Evidence(Evidence::Committed),
        Resolution::Evidence(Evidence::Absent),
        Resolution::Evidence(Evidence::Inconclusive),
        Resolution::Hold("no evidence".to_owned()),
    ];
    let resolutions: Vec<_> = (1..)
        .zip(resolutions)
        .map(|(number, resolution)| (unresolved(&monitor, number), resolution))
        .collect();
    let resolved_at = db.later(1);
    monitor.resolve(&resolutions).unwrap();
    let committed = ChangeOutcome::Applied { state: BatchState::Committed, next_waits: true };
    let pending = done(BatchState::Pending);
    assert_eq!(recorded(&reported), [committed, done(BatchState::Absent), pending, pending]);
    for number in [3, 4] {
        let stored = store.one(&format!("s::{number}"), number);
        assert_eq!(stored.checked_at, Some(resolved_at));
        assert_eq!(stored.held.is_some(), number == 4);
    }
    let details = store.details(&taken[1].service_id, &id(2)).unwrap().unwrap();
    assert_eq!(details.failed_attempts[0].outcome, "absent");
}

fn only_proof_of_commit_counts_in_another_epoch(db: &Database) {
    let store = db.open();
    accepted(&store, 2);
    let (monitor, _) = monitor(&store);
    let [absent, committed] = [1, 2].map(|number| unresolved(&monitor, number));
    db.execute("update lanes set epoch = epoch + 1").unwrap();
    let resolutions = [
        (absent, Resolution::Evidence(Evidence::Absent)),
        (committed, Resolution::Evidence(Evidence::Committed)),
    ];
    monitor.resolve(&resolutions).unwrap();
    assert_eq!(state(&store, 1), BatchState::Pending);
    assert_eq!(state(&store, 2), BatchState::Committed);
}

fn holds_are_reported_to_the_subscriber(db: &Database) {
    let store = db.open();
    accepted(&store, 1);
    let (monitor, reported) = monitor(&store);
    monitor
        .resolve(&[(unresolved(&monitor, 1), Resolution::Hold("no evidence".to_owned()))])
        .unwrap();
    let [(change, recorded)] = reported.lock().unwrap().clone().try_into().unwrap();
    assert_eq!(change.hold.as_deref(), Some("no evidence"));
    assert_eq!((change.service_id, change.batch_id), (service("s::1"), id(1)));
    assert_eq!(recorded, done(BatchState::Pending));
}
