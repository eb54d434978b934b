//! The throughput of the whole server, and of the submitter alone.
//!
//! `cargo bench -p grid-batch-service` measures with a simulated ledger that commits at once, in one
//! process. `-- --quick` uses a tenth of the batches. It fails if the submitter misses its goal.
#![expect(clippy::unwrap_used, reason = "a benchmark panics at any error")]

mod batches;
mod full_path;
mod submitter_only;

use std::{env, process::ExitCode};

use grid_batch_test_postgres::{PostgresServer, TestDatabase};

/// The least throughput of the submitter, relative to a plain loop.
const GOAL: f64 = 0.7;

fn main() -> ExitCode {
    let divisor = if env::args().any(|argument| argument == "--quick") { 10 } else { 1 };
    measure_full_path(divisor);
    measure_submitter(divisor)
}

fn measure_full_path(divisor: usize) {
    println!("from intake to committed, one batch per request, with a ledger that commits at once");
    println!(
        "{:>11} {:>9} {:>9} {:>11} {:>30} {:>30}",
        "", "services", "batches", "batches/s", "commit to next POST, ms: 50 %", "99 %"
    );
    let server = PostgresServer::start_durable();
    for (services, batches) in [(1, 1_000), (100, 10_000)] {
        let batches = batches / divisor;
        let database = TestDatabase::create_on(&server);
        let result = full_path::measure(database.url(), services, batches);
        print("PostgreSQL", services, batches, &result);
        let dir = tempfile::tempdir().unwrap();
        let url = format!("sqlite://{}", dir.path().join("batches.db").display());
        print("SQLite", services, batches, &full_path::measure(&url, services, batches));
    }
}

fn print(database: &str, services: usize, batches: usize, result: &full_path::FullPathResult) {
    println!(
        "{database:>11} {services:>9} {batches:>9} {:>11.0} {:>30.1} {:>30.1}",
        result.per_second, result.gap_median, result.gap_99
    );
}

fn measure_submitter(divisor: usize) -> ExitCode {
    println!("\nbatches POSTed per second, 100 in flight, compared with a plain loop");
    println!("{:>11} {:>11} {:>11}", "submitter", "plain loop", "ratio");
    let mut ratios: Vec<f64> = (0..5)
        .map(|_| {
            let (submitter, plain) = submitter_only::measure(10_000 / divisor);
            println!("{submitter:>11.0} {plain:>11.0} {:>11.2}", submitter / plain);
            submitter / plain
        })
        .collect();
    ratios.sort_by(f64::total_cmp);
    let median = ratios[ratios.len() / 2];
    let reached = median >= GOAL;
    println!(
        "\n{} submitter compared with a plain loop: {median:.2} (median), at least {GOAL}",
        if reached { "reached" } else { "MISSED " }
    );
    if reached { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
