//! What the server asks of its database for each batch, at load. Times are not compared, so that the test
//! is the same on every machine.
#![expect(clippy::unwrap_used, reason = "tests panic at any error")]

use std::path::Path;

use grid_batch_benches::{
    database::DatabaseKind, measurement::Measurement, options::RunOptions, report, run::run,
};

/// The most that a batch may take, on average.
struct Bounds {
    commits: f64,
    log_bytes: f64,
    statements: f64,
    rows: f64,
}

// The bounds are a tenth to a fifth above what was measured.

#[test]
fn batches_at_load_take_few_commits_on_sqlite() {
    let bounds = Bounds { commits: 0.5, log_bytes: 16_000.0, statements: 0.0, rows: 0.0 };
    check(DatabaseKind::Sqlite, &bounds);
}

#[test]
fn batches_at_load_take_few_statements_on_postgresql() {
    let bounds = Bounds { commits: 2.8, log_bytes: 3_700.0, statements: 5.0, rows: 18.0 };
    check(DatabaseKind::Postgres, &bounds);
}

fn check(database: DatabaseKind, bounds: &Bounds) {
    let server = Path::new(env!("CARGO_BIN_EXE_grid-batch"));
    let options = RunOptions {
        batches: 3_000,
        batches_per_request: 10,
        ledger_thread: true,
        ..RunOptions::new(server, database)
    };
    let run = run(&options).unwrap();
    println!("{}", report::text(&options, &run));
    let Measurement { database: used, .. } = &run;
    assert_eq!(run.out_of_order, 0);
    let is_at_most = |name: &str, total: u64, bound: f64| {
        let used = run.per_batch(total as f64);
        assert!(used <= bound, "{name} a batch: {used:.3}, more than {bound}");
    };
    is_at_most("commits", used.commits, bounds.commits);
    is_at_most("bytes of log", used.log_bytes, bounds.log_bytes);
    // SQLite does not count these.
    is_at_most("statements", used.statements.unwrap_or_default(), bounds.statements);
    is_at_most("rows", used.rows.unwrap_or_default(), bounds.rows);
}
