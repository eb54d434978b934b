//! Two programs side by side: what a batch costs with few and many services, and at short and long commit delays.

use std::{
    fmt::Write,
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use crate::{database::DatabaseKind, measurement::Measurement, run, run_options::RunOptions};

/// The numbers of services.
pub(crate) const SERVICES: [usize; 4] = [1, 100, 1_000, 10_000];
/// The times from the arrival of a batch at the ledger to its commit.
pub(crate) const DELAYS: [Duration; 3] =
    [Duration::from_millis(1), Duration::from_millis(200), Duration::from_secs(2)];
/// What is compared.
#[derive(Debug, Clone)]
pub struct Comparison {
    /// The programs before and after a change.
    pub programs: [PathBuf; 2],
    /// The kind of the servers' database.
    pub database: DatabaseKind,
    /// How often each program runs with the same options.
    pub rounds: usize,
    /// Whether a twentieth of the batches are enough.
    pub quick: bool,
}

/// The best of the rounds of one program: other processes only make a run slower and dearer.
#[derive(Debug, Clone, Copy)]
struct Best {
    /// Batches per second.
    rate: f64,
    /// The CPU time of the server for a batch.
    cpu: Duration,
    /// The fewest threads of the server at the end of the load.
    threads: usize,
}

/// Runs both programs with each number of services and each delay. Returns a table.
pub fn measure(comparison: &Comparison) -> io::Result<String> {
    let mut rows = Vec::new();
    let mut verification = Duration::MAX;
    for delay in DELAYS {
        for services in SERVICES {
            let mut runs: [Vec<Measurement>; 2] = Default::default();
            for round in 0..comparison.rounds {
                // What grows or shrinks from run to run must not favor one of them.
                let order = if round.is_multiple_of(2) { [0, 1] } else { [1, 0] };
                for program in order {
                    let path = &comparison.programs[program];
                    let options = options(comparison, path, services, delay);
                    let run = run::run(&options)?;
                    verification = verification.min(run.verification);
                    let Best { rate, cpu, threads } = Best::of(std::slice::from_ref(&run));
                    eprintln!(
                        "{}, {services} services, {delay:?}: {rate:.0} batches/s, {cpu:.0?} a batch, {threads} threads",
                        path.display(),
                    );
                    runs[program].push(run);
                }
            }
            let batches = options(comparison, Path::new(""), services, delay).batches;
            rows.push((services, delay, batches, runs.map(|runs| Best::of(&runs))));
        }
    }
    let mut text = header(verification);
    for (services, delay, batches, best) in rows {
        let _ = write!(text, "\n{services:>8} {:>8} ", format!("{delay:?}"));
        text.push_str(&row(batches, best, verification));
    }
    Ok(text)
}

fn options(comparison: &Comparison, server: &Path, services: usize, delay: Duration) -> RunOptions {
    let options = RunOptions::new(server, comparison.database).sized(services, delay);
    let batches = options.batches;
    RunOptions { batches: if comparison.quick { batches.div_ceil(20) } else { batches }, ..options }
}

impl Best {
    fn of(runs: &[Measurement]) -> Self {
        let cpu = |run: &Measurement| run.per_batch(run.server_cpu.as_secs_f64());
        Self {
            rate: runs.iter().map(Measurement::rate).fold(0.0, f64::max),
            cpu: Duration::from_secs_f64(runs.iter().map(cpu).fold(f64::MAX, f64::min)),
            threads: runs.iter().map(|run| run.threads).min().unwrap_or_default(),
        }
    }
}

fn header(verification: Duration) -> String {
    format!(
        "The best of the rounds, of the first and the second program, and the second as a part of the first.\n\
         CPU of the server, in ms and in costs of verifying a batch, at best {:.0} µs.\n\n\
         {:>8} {:>8} {:>8} {:>22} {:>22} {:>6} {:>16} {:>8}",
        verification.as_secs_f64() * 1e6,
        "services",
        "delay",
        "batches",
        "batches/s",
        "CPU a batch",
        "",
        "verifications",
        "threads",
    )
}

fn row(batches: usize, best: [Best; 2], verification: Duration) -> String {
    let [before, after] = best;
    let ms = |best: Best| best.cpu.as_secs_f64() * 1e3;
    let verifications = |best: Best| best.cpu.as_secs_f64() / verification.as_secs_f64();
    format!(
        "{batches:>8} {:>8.0} {:>7.0} {:>5.2} {:>10.3} {:>11.3} {:>6.2} {:>8.1} {:>7.1} {:>4} {:>3}",
        before.rate,
        after.rate,
        after.rate / before.rate,
        ms(before),
        ms(after),
        ms(after) / ms(before),
        verifications(before),
        verifications(after),
        before.threads,
        after.threads,
    )
}
