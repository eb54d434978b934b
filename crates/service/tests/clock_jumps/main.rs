//! The whole server, on a machine whose time of day is set forward or back at any stage of a batch.
#![expect(clippy::unwrap_used, reason = "a panic fails the test")]

mod harness;
mod stages;

use std::{thread, time::Duration};

use grid_batch_test_support::wait::wait_until;
use harness::{DatabaseKind, Jump, LedgerKind, Machine};
use stages::Stage;

/// Runs the stage once for each jump, at the same time.
fn check(stage: Stage, ledger: LedgerKind, database: DatabaseKind) {
    let runs =
        Jump::ALL.map(|jump| thread::spawn(move || stages::run(stage, jump, ledger, database)));
    for (run, jump) in runs.into_iter().zip(Jump::ALL) {
        assert!(run.join().is_ok(), "{stage:?} at {ledger:?} with {database:?}: {jump:?}");
    }
}

macro_rules! test_all_stages {
    ($($name:ident: $stage:ident)*) => {
        test_all_stages!(scabbard_postgres Scabbard Postgres: $($name: $stage)*);
        test_all_stages!(scabbard_sqlite Scabbard Sqlite: $($name: $stage)*);
        test_all_stages!(sawtooth_postgres Sawtooth Postgres: $($name: $stage)*);
        test_all_stages!(sawtooth_sqlite Sawtooth Sqlite: $($name: $stage)*);
    };
    ($module:ident $ledger:ident $database:ident: $($name:ident: $stage:ident)*) => {
        mod $module {
            use crate::{check, harness::{DatabaseKind, LedgerKind}, stages::Stage};

            $(
                #[test]
                fn $name() {
                    check(Stage::$stage, LedgerKind::$ledger, DatabaseKind::$database);
                }
            )*
        }
    };
}

test_all_stages! {
    jump_before_a_batch_is_taken: BeforeTaken
    jump_during_a_slow_post: SlowPost
    jump_while_a_batch_is_in_doubt: InDoubt
    jump_while_a_batch_is_pending: Pending
    jump_while_a_batch_is_delayed: Delayed
    jump_between_two_searches_for_evidence: BetweenSearches
    jump_while_a_batch_is_held: Held
}

mod two_machines {
    use std::thread;

    use crate::{
        harness::{Jump, LedgerKind},
        stages::{Stage, continue_elsewhere},
    };

    fn check(stage: Stage, ledger: LedgerKind) {
        let runs = Jump::ALL
            .map(|difference| thread::spawn(move || continue_elsewhere(stage, difference, ledger)));
        for (run, difference) in runs.into_iter().zip(Jump::ALL) {
            assert!(run.join().is_ok(), "{stage:?} at {ledger:?}: {difference:?}");
        }
    }

    #[test]
    fn delayed_batch_is_continued_in_time() {
        check(Stage::Delayed, LedgerKind::Scabbard);
    }

    #[test]
    fn pending_batch_is_continued_in_time() {
        check(Stage::Pending, LedgerKind::Scabbard);
    }

    #[test]
    fn batch_in_doubt_is_continued_in_time() {
        check(Stage::BetweenSearches, LedgerKind::Sawtooth);
    }
}

#[test]
fn health_shows_how_much_the_clock_is_ahead() {
    let machine =
        Machine::start(LedgerKind::Sawtooth, DatabaseKind::Postgres, 1, Duration::ZERO, &[]);
    let ahead = || machine.health()["clock_ahead_seconds"].as_f64().unwrap();
    assert!(ahead().abs() < 100.0, "{}", ahead());
    for (jump, expected) in [(Jump::Forward, 180.0), (Jump::Back, -3_420.0)] {
        machine.jump(jump);
        wait_until("the skew is measured", || (ahead() - expected).abs() < 100.0);
        assert_eq!(machine.health()["status"], "ok");
    }
}
