//! The job that evaluates dependents that the commit of an end has left.

use std::sync::Arc;

use grid_batch_core::batches::{Decision, NewBatch};
use grid_batch_core::queue::StrategyKind;
use grid_batch_store::StoreOptions;

use super::fixture::{SERVICE, ScheduledExt, address, numbers, writing};
use crate::fixture::{Database, StoreExt, batch, id, on_both, service};

on_both! {
    many_dependents_are_freed_by_the_job,
    decision_about_a_waiting_batch_frees_its_dependents,
    end_by_a_store_without_rules_is_followed_by_the_server,
    job_without_work_reads_nothing,
}

fn many_dependents_are_freed_by_the_job(db: &Database) {
    const MANY: u64 = 1_500;
    let store = db.open_scheduled(StrategyKind::Parallel, 10);
    let waiting: Vec<NewBatch> =
        (2..2 + MANY).map(|number| writing(number, &address(&format!("{number:08x}")))).collect();
    store.add_all(&[batch(SERVICE, 1)]);
    store.add_all(&waiting);
    let first = store.take_up_to(9);
    store.commit(&first);
    let next = store.take_up_to(99);
    assert_eq!(next.len(), 10, "enough for all lanes at once");
    assert!(store.dependents_wait());
    assert!(!store.dependents_wait(), "it is reported once");
    let free = "select count(*) as number from waiting_batches where blocker_seq is null";
    let freed = db.number(free);
    assert!(freed < 1_000, "{freed} in one commit");
    store.commit(&next);
    let mut committed = next.len() as u64;
    while committed < MANY {
        assert!(!store.free_dependents(500).unwrap().more, "only a part is freed at once");
        let freed = db.number(free);
        assert!(freed < 1_000, "{freed} are free");
        let taken = store.take_up_to(99);
        assert!(!taken.is_empty(), "{committed} were committed");
        store.commit(&taken);
        committed += taken.len() as u64;
    }
    store.free_all();
    assert_eq!(db.number("select count(*) as number from changed_blockers"), 0);
}

fn decision_about_a_waiting_batch_frees_its_dependents(db: &Database) {
    let store = db.open_parallel();
    store.add_all(&[writing(1, "aa"), batch(SERVICE, 2), writing(3, "bb")]);
    let first = store.take_up_to(9);
    assert_eq!(numbers(&first), [1]);
    let decided = store.decide(&service(SERVICE), &id(2), 0, Decision::Invalid).unwrap();
    assert!(matches!(
        decided,
        grid_batch_core::batches::ChangeOutcome::Applied { next_waits: true, .. }
    ));
    assert_eq!(numbers(&store.take_up_to(9)), [3]);
    assert_eq!(store.depth(&service(SERVICE)).unwrap(), 2);
}

/// An operator's command has no rules.
fn end_by_a_store_without_rules_is_followed_by_the_server(db: &Database) {
    let store = db.open_parallel();
    store.add_all(&[writing(1, "aa"), writing(2, "aa"), writing(3, "aa")]);
    let options = StoreOptions { scheduling: Arc::default(), ..db.options() };
    let command = db.open_with(options);
    command.decide(&service(SERVICE), &id(1), 0, Decision::Invalid).unwrap();
    command.decide(&service(SERVICE), &id(2), 0, Decision::Invalid).unwrap();
    assert!(store.take_up_to(9).is_empty());
    let freed = store.free_dependents(100).unwrap();
    assert_eq!(freed.ready.into_iter().collect::<Vec<_>>(), [service(SERVICE)]);
    assert_eq!(numbers(&store.take_up_to(9)), [3]);
    store.commit(&store.take_up_to(9));
}

fn job_without_work_reads_nothing(db: &Database) {
    let store = db.open_parallel();
    store.add_all(&[writing(1, "aa"), writing(2, "aa")]);
    assert_eq!(store.free_dependents(100).unwrap(), Default::default());
    assert!(!store.dependents_wait());
}
