//! Batches that a command decides to be invalid, whose settings may lack those of the server.

use grid_batch_core::{BatchState, ChangeOutcome, Decision, StrategyKind};
use grid_batch_store::StoreOptions;

use super::fixture::{SERVICE, ScheduledExt, numbers, writing};
use crate::fixture::{Database, StoreExt, TestStore, id, on_both, service};

on_both! {
    command_without_settings_obeys_the_policy_to_halt,
    command_without_settings_obeys_the_policy_to_continue,
    next_batch_of_a_lane_waits_for_the_policy,
    operator_continues_before_the_policy_is_applied,
}

/// As a command opens the database without a configuration file.
fn open_command(db: &Database) -> TestStore {
    db.open_with(StoreOptions { leaves_policies: true, ..db.options() })
}

fn decide_invalid(store: &TestStore, number: u64) {
    let decided = store.decide(&service(SERVICE), &id(number), 0, Decision::Invalid).unwrap();
    assert!(matches!(decided, ChangeOutcome::Applied { .. }), "{decided:?}");
}

fn state(store: &TestStore, number: u64) -> BatchState {
    store.one(SERVICE, number).progress.state
}

fn halted(store: &TestStore) -> usize {
    store.halts(None, 9).unwrap().len()
}

fn command_without_settings_obeys_the_policy_to_halt(db: &Database) {
    for strategy in StrategyKind::ALL {
        let db = db.another();
        let server = db.open_halting(strategy);
        server.add_all(&[writing(1, "aa"), writing(2, "aa"), writing(3, "aa")]);
        decide_invalid(&open_command(&db), 2);
        server.free_all();
        assert_eq!(halted(&server), 1, "{strategy:?}");
        assert_eq!(server.commit_all_of(SERVICE), [1], "{strategy:?}");
        server.free_all();
        assert_eq!(server.commit_all_of(SERVICE), [0; 0], "{strategy:?}");
        open_command(&db).continue_after(&service(SERVICE), &id(2), None).unwrap();
        server.free_all();
        assert_eq!(server.commit_all_of(SERVICE), [3], "{strategy:?}");
    }
}

fn command_without_settings_obeys_the_policy_to_continue(db: &Database) {
    let server = db.open_parallel();
    server.add_all(&[writing(1, "aa"), writing(2, "aa")]);
    decide_invalid(&open_command(db), 1);
    server.free_all();
    assert_eq!((halted(&server), server.commit_all_of(SERVICE)), (0, vec![2]));
    assert_eq!(db.scheduling_rows(), 0);
}

fn next_batch_of_a_lane_waits_for_the_policy(db: &Database) {
    let server = db.open_halting(StrategyKind::Parallel);
    server.add_all(&[writing(1, "aa"), writing(2, "aa")]);
    decide_invalid(&open_command(db), 1);
    assert_eq!(numbers(&server.take_up_to(9)), [0; 0], "no server has looked at it");
    server.free_all();
    assert_eq!((state(&server, 2), halted(&server)), (BatchState::New, 1));
}

fn operator_continues_before_the_policy_is_applied(db: &Database) {
    let server = db.open_halting(StrategyKind::Serial);
    server.add_all(&[writing(1, "aa"), writing(2, "bb")]);
    let command = open_command(db);
    decide_invalid(&command, 1);
    command.continue_after(&service(SERVICE), &id(1), None).unwrap();
    server.free_all();
    assert_eq!((halted(&server), server.commit_all_of(SERVICE)), (0, vec![2]));
}
