//! The store takes the batches that the strategies let it take: random batches with overlapping addresses
//! are added, sent and ended, and each round is compared with `schedule`.
#![expect(clippy::unwrap_used, reason = "a panic fails the test")]

mod dependencies;
mod lists;
mod lost;
mod rounds;
mod service;

use grid_batch_core::queue::StrategyKind;
use grid_batch_test_postgres::TestDatabase;

use crate::{
    dependencies::check_dependents, lists::check_lists, lost::check_lost_batch, rounds::Check,
};

#[test]
fn store_takes_what_serial_lets_it_take_on_postgres() {
    Check::of(StrategyKind::Serial).on_postgres();
}

#[test]
fn store_takes_what_serial_lets_it_take_on_sqlite() {
    Check::of(StrategyKind::Serial).on_sqlite();
}

#[test]
fn store_takes_what_parallel_lets_it_take_on_postgres() {
    Check::of(StrategyKind::Parallel).on_postgres();
}

#[test]
fn store_takes_what_parallel_lets_it_take_on_sqlite() {
    Check::of(StrategyKind::Parallel).on_sqlite();
}

#[test]
fn store_takes_what_pipeline_lets_it_take_on_postgres() {
    Check::of(StrategyKind::Pipeline).on_postgres();
}

#[test]
fn store_takes_what_pipeline_lets_it_take_on_sqlite() {
    Check::of(StrategyKind::Pipeline).on_sqlite();
}

#[test]
fn few_lanes_are_used_and_not_exceeded_on_postgres() {
    Check::of(StrategyKind::Parallel).with_lanes(2).on_postgres();
    Check::of(StrategyKind::Pipeline).with_lanes(2).on_postgres();
}

#[test]
fn few_lanes_are_used_and_not_exceeded_on_sqlite() {
    Check::of(StrategyKind::Parallel).with_lanes(2).on_sqlite();
    Check::of(StrategyKind::Pipeline).with_lanes(2).on_sqlite();
}

#[test]
fn lengths_that_are_new_let_nothing_overtake_on_postgres() {
    Check { knows_lengths: false, ..Check::of(StrategyKind::Parallel) }.on_postgres();
}

#[test]
fn lengths_that_are_new_let_nothing_overtake_on_sqlite() {
    Check { knows_lengths: false, ..Check::of(StrategyKind::Parallel) }.on_sqlite();
}

#[test]
fn halt_stops_what_the_strategy_says_on_postgres() {
    for strategy in StrategyKind::ALL {
        Check::of(strategy).with_halts().on_postgres();
    }
}

#[test]
fn halt_stops_what_the_strategy_says_on_sqlite() {
    for strategy in StrategyKind::ALL {
        Check::of(strategy).with_halts().on_sqlite();
    }
}

#[test]
fn strategy_may_change_with_open_batches_on_postgres() {
    Check { restarts: true, ..Check::of(StrategyKind::Parallel) }.on_postgres();
}

#[test]
fn strategy_may_change_with_open_batches_on_sqlite() {
    Check { restarts: true, ..Check::of(StrategyKind::Parallel) }.on_sqlite();
}

#[test]
fn lost_batch_is_sent_again_first_after_a_change_on_postgres() {
    check_lost_batch(TestDatabase::create().url());
}

#[test]
fn lost_batch_is_sent_again_first_after_a_change_on_sqlite() {
    let dir = tempfile::tempdir().unwrap();
    check_lost_batch(&format!("sqlite://{}/q.db", dir.path().display()));
}

#[test]
fn lists_keep_conflicting_batches_in_order_on_postgres() {
    check_lists(TestDatabase::create().url());
}

#[test]
fn lists_keep_conflicting_batches_in_order_on_sqlite() {
    let dir = tempfile::tempdir().unwrap();
    check_lists(&format!("sqlite://{}/q.db", dir.path().display()));
}

#[test]
fn dependents_follow_what_they_depend_on_on_postgres() {
    for strategy in [StrategyKind::Parallel, StrategyKind::Serial] {
        check_dependents(|check| check(TestDatabase::create().url()), strategy);
    }
}

#[test]
fn dependents_follow_what_they_depend_on_on_sqlite() {
    for strategy in [StrategyKind::Parallel, StrategyKind::Serial] {
        let in_new_database = |check: &dyn Fn(&str) -> _| {
            let dir = tempfile::tempdir().unwrap();
            check(&format!("sqlite://{}/q.db", dir.path().display()))
        };
        check_dependents(in_new_database, strategy);
    }
}
