//! Random batches through the server to a ledger that executes them. Whatever the strategy and the faults,
//! its state must become that of applying the batches one by one, in the order in which they were accepted.

mod decisions;
mod repeated;
mod run;

use grid_batch_core::queue::{AfterInvalid, StrategyKind};
use grid_batch_test_postgres::TestDatabase;

use self::run::Run;

#[test]
fn serial_on_sqlite_is_one_by_one() {
    Run::new(StrategyKind::Serial, 40).assert_clean();
}

#[test]
fn serial_on_postgres_is_one_by_one() {
    let database = TestDatabase::create();
    Run::new(StrategyKind::Serial, 40).on_postgres(&database).assert_clean();
}

#[test]
fn parallel_on_sqlite_is_one_by_one() {
    Run::new(StrategyKind::Parallel, 200).assert_clean();
}

#[test]
fn parallel_on_postgres_is_one_by_one() {
    let database = TestDatabase::create();
    Run::new(StrategyKind::Parallel, 200).on_postgres(&database).assert_clean();
}

#[test]
fn pipeline_on_sqlite_is_one_by_one() {
    Run::new(StrategyKind::Pipeline, 100).assert_clean();
}

#[test]
fn pipeline_on_postgres_is_one_by_one() {
    let database = TestDatabase::create();
    Run::new(StrategyKind::Pipeline, 100).on_postgres(&database).assert_clean();
}

#[test]
fn batches_of_two_instances_are_one_by_one() {
    let database = TestDatabase::create();
    Run::new(StrategyKind::Parallel, 100).on_postgres(&database).with_instances(2).assert_clean();
}

#[test]
fn halts_and_decisions_leave_the_state_of_one_by_one() {
    for strategy in [StrategyKind::Serial, StrategyKind::Parallel, StrategyKind::Pipeline] {
        Run::new(strategy, 60).after_invalid(AfterInvalid::Halt).assert_clean();
    }
}

#[test]
fn repeated_transactions_are_applied_once() {
    Run::new(StrategyKind::Parallel, 150).with_repeated().assert_clean();
}

#[test]
fn repeated_transactions_in_halts_are_applied_once() {
    Run::new(StrategyKind::Parallel, 100)
        .with_repeated()
        .after_invalid(AfterInvalid::Halt)
        .assert_clean();
}
