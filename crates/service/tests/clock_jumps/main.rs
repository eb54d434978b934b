//! The whole server, on a machine whose time of day is set forward or back at any stage of a batch.
#![expect(clippy::unwrap_used, reason = "a panic fails the test")]

mod harness;
mod stages;

use std::thread;

use harness::{DatabaseKind, Jump, LedgerKind};
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
