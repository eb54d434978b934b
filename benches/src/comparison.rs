//! Two programs side by side: what a batch costs with few and many services, and at short and long commit delays.

use std::{
    fmt::Write,
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use crate::{database::DatabaseKind, measurement::Measurement, run, run_options::RunOptions};

/// The numbers of services.
const SERVICES: [usize; 4] = [1, 100, 1_000, 10_000];
/// The times from the arrival of a batch at the ledger to its commit.
const DELAYS: [Duration; 3] =
    [Duration::from_millis(1), Duration::from_millis(200), Duration::from_secs(2)];
/// For how long the batches of one service follow each other at the ledger, if that are not too many or too few.
const TIME: Duration = Duration::from_secs(4);
const FEWEST_OF_A_SERVICE: usize = 4;
const MOST_OF_A_SERVICE: usize = 1_000;
const MOST_BATCHES: usize = 10_000;
/// The most event sockets: each is a file descriptor of the server and of the ledger.
const EVENT_SOCKETS: usize = 1_000;

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
    let of_a_service = usize::try_from(TIME.as_millis() / delay.as_millis()).unwrap_or(usize::MAX);
    let of_a_service = of_a_service.clamp(FEWEST_OF_A_SERVICE, MOST_OF_A_SERVICE);
    let batches = (services * of_a_service).min(MOST_BATCHES.max(services));
    let batches = if comparison.quick { batches.div_ceil(20) } else { batches };
    let event_sockets = Some(services.min(EVENT_SOCKETS));
    RunOptions {
        services,
        delay,
        batches,
        event_sockets,
        ..RunOptions::new(server, comparison.database)
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_take_seconds_and_use_each_service() {
        let comparison = Comparison {
            programs: Default::default(),
            database: DatabaseKind::Sqlite,
            rounds: 1,
            quick: false,
        };
        for (services, delay, batches) in [
            (1, DELAYS[0], 1_000),
            (100, DELAYS[0], 10_000),
            (10_000, DELAYS[0], 10_000),
            (1, DELAYS[1], 20),
            (100, DELAYS[1], 2_000),
            (1, DELAYS[2], 4),
            (1_000, DELAYS[2], 4_000),
        ] {
            let options = options(&comparison, Path::new(""), services, delay);
            assert_eq!(options.batches, batches, "{services} services, {delay:?}");
        }
    }
}
