//! PostgreSQL behind pgbouncer.

use grid_batch_test_postgres::{Pgbouncer, PoolMode, RestartablePostgres};
use grid_batch_test_support::{
    batches::{SignedBatch, signed_batch},
    process::run,
};

use crate::harness::BatchHarness;

const SERVICES: usize = 20;

fn harness(pgbouncer: &Pgbouncer) -> BatchHarness {
    BatchHarness::scabbard(SERVICES).with_database(&pgbouncer.url())
}

fn batches(harness: &BatchHarness) -> Vec<SignedBatch> {
    harness.services.iter().map(|service| signed_batch(service, 0)).collect()
}

/// Several clients would use prepared statements and settings of the same session.
#[test]
fn pooler_in_transaction_mode_is_refused_at_start() {
    let postgres = RestartablePostgres::start(100);
    for (mode, pool_size) in
        [(PoolMode::Transaction, 1), (PoolMode::Transaction, 20), (PoolMode::Statement, 20)]
    {
        let pgbouncer = Pgbouncer::start(&postgres, mode, pool_size);
        let output = run(harness(&pgbouncer).command(&[]));
        assert_ne!(output.exit_code, Some(0), "{output:?}");
        for part in ["connection pooler", "session mode", "directly"] {
            assert!(output.stderr.contains(part), "{mode:?}, {pool_size}: {output:?}");
        }
    }
}

#[test]
fn pooler_in_session_mode_works() {
    let postgres = RestartablePostgres::start(100);
    let pgbouncer = Pgbouncer::start(&postgres, PoolMode::Session, 20);
    let harness = harness(&pgbouncer);
    let server = harness.serve();
    server.submit(&batches(&harness));
    harness.wait_until_all_committed(&batches(&harness));
    server.stop();
}
