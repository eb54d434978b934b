//! How fast is the way of a batch, whole and in its part that sends?
//!
//! `cargo bench -p grid-batch-service` measures with a ledger that commits at once, everything in
//! this process and on this machine; `-- --quick` a tenth of it. It fails where the goal is missed.
#![expect(clippy::unwrap_used, reason = "a measurement fails where it is surprised")]

mod alone;
mod batches;
mod whole;

use std::{env, process::ExitCode};

use grid_batch_test_postgres::{PostgresServer, TestDatabase};

/// The submitter alone reaches this part of a plain loop.
const GOAL: f64 = 0.7;

fn main() -> ExitCode {
    let scale = if env::args().any(|argument| argument == "--quick") { 10 } else { 1 };
    whole_way(scale);
    sending_alone(scale)
}

fn whole_way(scale: usize) {
    println!("from intake to committed, a batch a request, by a ledger that commits at once");
    println!(
        "{:>11} {:>9} {:>9} {:>11} {:>30} {:>30}",
        "", "services", "batches", "batches/s", "commit to next POST, ms: 50 %", "99 %"
    );
    let server = PostgresServer::start_durable();
    for (services, batches) in [(1, 1_000), (100, 10_000)] {
        let batches = batches / scale;
        let database = TestDatabase::create_on(&server);
        print("PostgreSQL", services, batches, &whole::measure(database.url(), services, batches));
        let dir = tempfile::tempdir().unwrap();
        let url = format!("sqlite://{}", dir.path().join("batches.db").display());
        print("SQLite", services, batches, &whole::measure(&url, services, batches));
    }
}

fn print(database: &str, services: usize, batches: usize, measured: &whole::Measured) {
    println!(
        "{database:>11} {services:>9} {batches:>9} {:>11.0} {:>30.1} {:>30.1}",
        measured.per_second, measured.gap_median, measured.gap_99
    );
}

fn sending_alone(scale: usize) -> ExitCode {
    println!(
        "\nbatches POSTed per second, 100 at once, in turns with a plain loop of the same client"
    );
    println!("{:>11} {:>11} {:>11}", "submitter", "plain loop", "ratio");
    let mut ratios: Vec<f64> = (0..5)
        .map(|_| {
            let (submitter, plain) = alone::measure(10_000 / scale);
            println!("{submitter:>11.0} {plain:>11.0} {:>11.2}", submitter / plain);
            submitter / plain
        })
        .collect();
    ratios.sort_by(f64::total_cmp);
    let ratio = ratios[ratios.len() / 2];
    let reached = ratio >= GOAL;
    println!(
        "\n{} the submitter alone, beside a plain loop: {ratio:.2} (median), at least {GOAL}",
        if reached { "reached" } else { "MISSED " }
    );
    if reached { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
