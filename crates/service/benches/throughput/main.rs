//! The throughput of the submitter alone.
//!
//! `cargo bench -p grid-batch-service` measures with a simulated ledger that commits at once, in one
//! process. `-- --quick` uses a tenth of the batches. It fails if the submitter misses its goal.
#![expect(clippy::unwrap_used, reason = "a benchmark panics at any error")]

mod batches;
mod submitter_only;

use std::{env, process::ExitCode};

/// The least throughput of the submitter, relative to a plain loop.
const GOAL: f64 = 0.7;

fn main() -> ExitCode {
    let divisor = if env::args().any(|argument| argument == "--quick") { 10 } else { 1 };
    measure_submitter(divisor)
}

fn measure_submitter(divisor: usize) -> ExitCode {
    println!("batches POSTed per second, 100 in flight, compared with a plain loop");
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
