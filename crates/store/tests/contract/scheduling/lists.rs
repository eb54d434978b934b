//! Conflicting batches that are sent in one request.

use std::sync::Arc;

use grid_batch_core::batches::{BatchState, ChangeOutcome, LedgerStatus};
use grid_batch_core::evidence::{Evidence, LedgerQuestionStore};
use grid_batch_core::ledger::Outcome;
use grid_batch_core::queue::{AfterInvalid, RoundStore, ServiceShare, StrategyKind, TakenBatch};
use grid_batch_store::StoreOptions;

use super::fixture::{SERVICE, ScheduledExt, numbers, rules, writing};
use crate::fixture::{Database, StoreExt, TestStore, id, on_both, service};

on_both! {
    conflicting_batches_are_taken_in_a_list,
    closed_lists_have_one_batch,
    batches_under_way_are_awaited_by_a_list,
    end_of_a_list_says_that_the_next_waits,
    lost_batches_of_a_list_are_sent_singly_at_first,
    lost_batch_waits_for_those_behind_it,
    evidence_search_knows_the_batches_of_lists,
    overtaken_batch_is_held,
    batch_that_does_not_fit_ends_the_list,
    halting_service_has_no_lists,
    batch_that_writes_everything_is_sent_alone,
}

fn with_lists(db: &Database, addresses: &[&str]) -> TestStore {
    let store = db.open_parallel();
    store.lists().set_open(true);
    let batches: Vec<_> = (1..).zip(addresses).map(|(n, address)| writing(n, address)).collect();
    store.add_all(&batches);
    store
}

/// The numbers of the taken batches, each list by itself.
fn lists(taken: &[TakenBatch]) -> Vec<Vec<u64>> {
    let lists = taken.chunk_by(|_, next| next.joins_list);
    lists.map(numbers).collect()
}

fn accept(store: &TestStore, taken: &[TakenBatch]) {
    for batch in taken {
        store.outcome(batch, Outcome::Accepted);
    }
}

fn conflicting_batches_are_taken_in_a_list(db: &Database) {
    let store = with_lists(db, &["aa", "aa", "bb", "aa", "cc"]);
    let taken = store.take_up_to(9);
    assert_eq!(lists(&taken), [vec![1, 2, 3, 4, 5]]);
    store.commit(&taken);
    assert_eq!(db.scheduling_rows(), 0);
    store.add_all(&[writing(6, "aa"), writing(7, "bb")]);
    assert_eq!(lists(&store.take_up_to(9)), [[6], [7]], "nothing conflicts");
}

fn closed_lists_have_one_batch(db: &Database) {
    let store = with_lists(db, &["aa", "aa", "aa"]);
    store.lists().set_open(false);
    let first = store.take_up_to(9);
    assert_eq!(lists(&first), [[1]]);
    store.commit(&first);
    store.lists().set_open(true);
    assert_eq!(lists(&store.take_up_to(9)), [[2, 3]]);
}

fn batches_under_way_are_awaited_by_a_list(db: &Database) {
    let store = with_lists(db, &["aa", "aa"]);
    let sent = store.take_up_to(9);
    store.add_all(&[writing(3, "aa"), writing(4, "bb"), writing(5, "aa")]);
    assert_eq!(lists(&store.take_up_to(9)), [[4]], "4 conflicts with nothing");
    store.commit(&sent[..1]);
    assert!(store.take_up_to(9).is_empty());
    store.commit(&sent[1..]);
    assert_eq!(lists(&store.take_up_to(9)), [[3]], "5 may conflict with 4");
}

fn end_of_a_list_says_that_the_next_waits(db: &Database) {
    let store = with_lists(db, &["aa", "aa", "aa"]);
    let sent = store.take_up_to(2);
    assert_eq!(lists(&sent), [[1, 2]]);
    accept(&store, &sent);
    store.status(&sent[0], LedgerStatus::Committed);
    let ended = store.status(&sent[1], LedgerStatus::Committed);
    let next_waits = ChangeOutcome::Applied { state: BatchState::Committed, next_waits: true };
    assert_eq!(ended, next_waits);
}

fn lost_batches_of_a_list_are_sent_singly_at_first(db: &Database) {
    let store = with_lists(db, &["aa", "aa", "aa", "aa"]);
    let sent = store.take_up_to(9);
    accept(&store, &sent);
    for lost in &sent {
        store.evidence(lost, Evidence::Lost);
    }
    let again = store.take_up_to(9);
    assert_eq!(lists(&again), [[1]]);
    store.commit(&again);
    let again = store.take_up_to(9);
    assert_eq!(lists(&again), [[2, 3]]);
}

fn lost_batch_waits_for_those_behind_it(db: &Database) {
    let store = with_lists(db, &["aa", "aa", "aa"]);
    let sent = store.take_up_to(9);
    accept(&store, &sent);
    store.evidence(&sent[0], Evidence::Lost);
    store.evidence(&sent[1], Evidence::Lost);
    assert!(store.take_up_to(9).is_empty(), "the ledger may have the third");
    store.evidence(&sent[2], Evidence::Lost);
    assert_eq!(lists(&store.take_up_to(9)), [[1]]);
}

fn evidence_search_knows_the_batches_of_lists(db: &Database) {
    let store = with_lists(db, &["aa", "aa", "bb"]);
    let sent = store.take_up_to(9);
    for batch in &sent {
        store.outcome(batch, Outcome::Ambiguous);
    }
    let in_list = |number| {
        let ids = [id(number).to_string()];
        store.monitor().get_unresolved_batches(SERVICE, &ids).unwrap()[0].in_list
    };
    assert_eq!([1, 2, 3].map(in_list), [true, true, false]);
    store.status(&sent[0], LedgerStatus::Committed);
    assert!(!in_list(2), "it waits for no other");
}

fn overtaken_batch_is_held(db: &Database) {
    let store = with_lists(db, &["aa", "bb", "aa", "bb"]);
    let sent = store.take_up_to(9);
    assert_eq!(lists(&sent), [[1, 2, 3, 4]]);
    accept(&store, &sent);
    store.status(&sent[2], LedgerStatus::Committed);
    let [first, second] = [1, 2].map(|number| store.one(SERVICE, number));
    let hold = first.held.unwrap();
    assert!(hold.until_decision && hold.reason.contains("a later batch"), "{hold:?}");
    assert_eq!(second.held, None, "it conflicts with another one");
    store.evidence(&sent[0], Evidence::Lost);
    store.evidence(&sent[1], Evidence::Lost);
    store.evidence(&sent[3], Evidence::Lost);
    assert_eq!(lists(&store.take_up_to(9)), [[2]]);
    store.status(&sent[0], LedgerStatus::Committed);
    assert_eq!(store.one(SERVICE, 1).progress.state, BatchState::Committed);
}

fn batch_that_does_not_fit_ends_the_list(db: &Database) {
    let store = with_lists(db, &["aa", "aa", "bb", "aa"]);
    let share = ServiceShare { service_id: service(SERVICE), batches: 9 };
    let mut asked = 0;
    let mut fits = |_| {
        asked += 1;
        asked != 3
    };
    let round = store.worker_of_all().take_round(&[share], &mut fits).unwrap();
    assert_eq!(lists(&round.batches), [[1, 2]]);
    assert_eq!(round.left, [service(SERVICE)]);
}

fn halting_service_has_no_lists(db: &Database) {
    let mut rules = rules(StrategyKind::Parallel, 9);
    rules.default.after_invalid = AfterInvalid::Halt;
    let store = db.open_with(StoreOptions { scheduling: Arc::new(rules), ..db.options() });
    store.lists().set_open(true);
    store.add_all(&[writing(1, "aa"), writing(2, "aa")]);
    assert_eq!(lists(&store.take_up_to(9)), [[1]]);
}

/// It may change settings that the ledger reads for others.
fn batch_that_writes_everything_is_sent_alone(db: &Database) {
    let store = with_lists(db, &["aa", "aa", "", "aa", "aa"]);
    for list in [&[1, 2][..], &[3], &[4, 5]] {
        let taken = store.take_up_to(9);
        assert_eq!(lists(&taken), [list]);
        store.commit(&taken);
    }
}
