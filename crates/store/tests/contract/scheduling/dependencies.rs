//! Batches that depend on transactions of other batches.

use grid_batch_core::batches::{BatchState, ChangeOutcome, Decision, LedgerStatus};
use grid_batch_core::queries::BatchQueryStore;
use grid_batch_core::queue::StrategyKind;

use super::fixture::{SERVICE, ScheduledExt, depending, number, numbers, transaction_of, writing};
use crate::fixture::{Database, StoreExt, id, on_both, service};

on_both! {
    dependent_waits_for_the_commit_of_its_dependency,
    dependency_on_a_committed_batch_is_satisfied,
    dependent_waits_for_a_batch_of_another_service,
    dependents_of_an_invalid_batch_end_without_being_sent,
    new_dependent_of_an_invalid_batch_ends,
    dependency_and_conflict_both_hold_a_batch_back,
    batch_of_the_same_list_is_a_dependency,
    decided_end_of_a_waiting_batch_frees_its_dependents,
    nothing_of_dependencies_stays_when_all_have_ended,
    pipeline_does_not_send_a_dependent_ahead,
}

fn dependent_waits_for_the_commit_of_its_dependency(db: &Database) {
    let store = db.open_parallel();
    store.add_all(&[writing(1, "aa")]);
    store.add_all(&[depending(SERVICE, 2, "bb", &[transaction_of(1)]), writing(3, "cc")]);
    let taken = store.take_up_to(10);
    assert_eq!(numbers(&taken), [1, 3], "the second one depends on the first");
    store.commit(&taken[..1]);
    assert_eq!(numbers(&store.take_up_to(10)), [2]);
}

fn dependency_on_a_committed_batch_is_satisfied(db: &Database) {
    let store = db.open_parallel();
    store.add_all(&[writing(1, "aa")]);
    store.commit(&store.take_up_to(1));
    store.add_all(&[depending(SERVICE, 2, "bb", &[transaction_of(1)])]);
    assert_eq!(numbers(&store.take_up_to(10)), [2]);
}

fn dependent_waits_for_a_batch_of_another_service(db: &Database) {
    let store = db.open_parallel();
    store.add_all(&[writing(1, "aa")]);
    store.add_all(&[depending("c::d", 2, "aa", &[transaction_of(1)])]);
    assert_eq!(store.commit_all_of("c::d"), [0; 0]);
    store.commit(&store.take_up_to(1));
    store.free_all();
    assert_eq!(store.commit_all_of("c::d"), [2]);
}

fn dependents_of_an_invalid_batch_end_without_being_sent(db: &Database) {
    let store = db.open_parallel();
    store.add_all(&[writing(1, "aa")]);
    store.add_all(&[depending(SERVICE, 2, "bb", &[transaction_of(1)])]);
    store.add_all(&[depending(SERVICE, 3, "cc", &[transaction_of(2)])]);
    store.add_all(&[depending("c::d", 4, "cc", &[transaction_of(3)]), writing(5, "aa")]);
    store.end(&store.take_up_to(1)[0], LedgerStatus::Invalid);
    store.answer_absent();
    for (name, number, dependency) in [(SERVICE, 2, 1), (SERVICE, 3, 2), ("c::d", 4, 3)] {
        let batch = store.one(name, number);
        assert_eq!((batch.progress.state, batch.progress.attempts), (BatchState::Invalid, 0));
        let error = batch.last_error.unwrap();
        assert!(error.contains("was not sent"), "{error}");
        assert!(error.contains(&transaction_of(dependency).to_string()), "{error}");
        let details = store.details(&service(name), &id(number)).unwrap().unwrap();
        assert!(details.receipts[0].error_message.contains("depends on"), "{details:?}");
    }
    assert_eq!(numbers(&store.take_up_to(10)), [5], "it only conflicts with the invalid one");
}

fn new_dependent_of_an_invalid_batch_ends(db: &Database) {
    let store = db.open_parallel();
    store.add_all(&[writing(1, "aa")]);
    store.end(&store.take_up_to(1)[0], LedgerStatus::Invalid);
    store.add_all(&[depending(SERVICE, 2, "bb", &[transaction_of(1)])]);
    assert_eq!(numbers(&store.take_up_to(10)), [0; 0]);
    store.answer_absent();
    assert_eq!(store.one(SERVICE, 2).progress.state, BatchState::Invalid);
}

fn dependency_and_conflict_both_hold_a_batch_back(db: &Database) {
    let store = db.open_parallel();
    store.add_all(&[writing(1, "aa"), writing(2, "bb")]);
    store.add_all(&[depending(SERVICE, 3, "bb", &[transaction_of(1)])]);
    let taken = store.take_up_to(10);
    assert_eq!(numbers(&taken), [1, 2]);
    store.commit(&taken[..1]);
    assert_eq!(numbers(&store.take_up_to(10)), [0; 0], "it conflicts with the second one");
    store.commit(&taken[1..]);
    assert_eq!(numbers(&store.take_up_to(10)), [3]);
}

fn batch_of_the_same_list_is_a_dependency(db: &Database) {
    let store = db.open_parallel();
    // The first one depends on the second, which comes after it in the list.
    store.add_all(&[
        depending(SERVICE, 1, "aa", &[transaction_of(2)]),
        writing(2, "bb"),
        depending(SERVICE, 3, "cc", &[transaction_of(2)]),
    ]);
    assert_eq!(numbers(&store.take_up_to(10)), [2]);
    store.free_all();
    let committed: Vec<u64> = {
        let second = store.one(SERVICE, 2);
        let taken = grid_batch_core::queue::TakenBatch {
            service_id: service(SERVICE),
            batch_id: second.batch_id,
            attempt: 1,
            epoch: 1,
            serialized_batch: Vec::new(),
            deadline: None,
            trace: None,
            joins_list: false,
        };
        store.commit(std::slice::from_ref(&taken));
        store.free_all();
        store.take_up_to(10).iter().map(number).collect()
    };
    assert_eq!(committed, [3, 1], "the first one got its position when the second one arrived");
}

fn decided_end_of_a_waiting_batch_frees_its_dependents(db: &Database) {
    let store = db.open_parallel();
    store.add_all(&[writing(1, "aa"), writing(2, "aa"), writing(3, "aabb")]);
    store.add_all(&[depending(SERVICE, 4, "cc", &[transaction_of(2)])]);
    let first = store.take_up_to(10);
    assert_eq!(numbers(&first), [1]);
    let decided = store.decide(&service(SERVICE), &id(2), 0, Decision::Committed).unwrap();
    assert!(matches!(decided, ChangeOutcome::Applied { .. }), "{decided:?}");
    assert_eq!(numbers(&store.take_up_to(10)), [4], "what depends on it goes on");
    store.commit(&first);
    assert_eq!(numbers(&store.take_up_to(10)), [3], "what conflicts with it waited for the first");
}

fn nothing_of_dependencies_stays_when_all_have_ended(db: &Database) {
    let store = db.open_parallel();
    store.add_all(&[depending(SERVICE, 2, "bb", &[transaction_of(1)]), writing(3, "bb")]);
    store.add_all(&[writing(1, "aa")]);
    store.free_all();
    let mut committed = Vec::new();
    for _ in 0..3 {
        committed.extend(store.commit_all_of(SERVICE));
        store.free_all();
    }
    assert_eq!(committed.len(), 3, "{committed:?}");
    assert_eq!(db.scheduling_rows(), 0);
    assert_eq!(db.number("select count(*) as number from missing_transactions"), 0);
}

fn pipeline_does_not_send_a_dependent_ahead(db: &Database) {
    let store = db.open_scheduled(StrategyKind::Pipeline, 10);
    store.add_all(&[writing(1, "aa"), writing(2, "aa")]);
    store.add_all(&[depending(SERVICE, 3, "bb", &[transaction_of(2)]), writing(4, "cc")]);
    let first = store.take_up_to(10);
    store.outcome(&first[0], grid_batch_core::ledger::Outcome::Accepted);
    let second = store.take_up_to(10);
    assert_eq!((numbers(&first), numbers(&second)), (vec![1], vec![2]));
    store.outcome(&second[0], grid_batch_core::ledger::Outcome::Accepted);
    assert_eq!(numbers(&store.take_up_to(10)), [0; 0], "and nothing overtakes it");
    store.status(&first[0], LedgerStatus::Committed);
    store.status(&second[0], LedgerStatus::Committed);
    assert_eq!(numbers(&store.take_up_to(10)), [3]);
}
