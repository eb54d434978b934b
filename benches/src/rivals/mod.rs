//! Compares the store and an end-to-end run with job queues that keep order per key.

mod queues;
mod table;

use std::{io, path::Path};

use serde::Deserialize;

use self::table::Row;
use crate::{
    arrangement::Arrangement,
    database::{Database, DatabaseKind},
    run::run,
    run_options::RunOptions,
    store_cycle,
};

/// What passes through each queue.
#[derive(Debug, Clone, Copy)]
struct Case {
    units: usize,
    keys: usize,
    arrangement: Arrangement,
}

impl Case {
    /// The numbers of the keys of all units, in the order of adding.
    fn keys_of_units(self) -> impl Iterator<Item = usize> {
        let Self { units, keys, arrangement } = self;
        (0..units).map(move |unit| arrangement.key(unit, units, keys))
    }
}

/// What a queue has done in a case.
#[derive(Debug, Clone, Copy, Deserialize)]
struct Outcome {
    done: usize,
    out_of_order: usize,
    adding_seconds: f64,
    working_seconds: f64,
}

impl Outcome {
    /// Units a second while it worked.
    fn rate(self) -> f64 {
        self.done as f64 / self.working_seconds
    }

    /// The faster one, since other work on the machine only makes a queue slower.
    fn or_faster(self, other: Self) -> Self {
        let faster = if self.rate() < other.rate() { other } else { self };
        Self { out_of_order: self.out_of_order.max(other.out_of_order), ..faster }
    }
}

/// Runs all, one after the other, and returns the table. It has the best of several rounds.
pub fn measure(
    server: &Path,
    scripts: &Path,
    numbers_of_units: &[usize],
    keys: usize,
    rounds: usize,
) -> io::Result<String> {
    let arrangements = [Arrangement::Interleaved, Arrangement::Bursts];
    let case = |&units| arrangements.map(|arrangement| Case { units, keys, arrangement });
    let cases: Vec<Case> = numbers_of_units.iter().flat_map(case).collect();
    let mut rows = measure_round(server, scripts, &cases)?;
    for _ in 1..rounds {
        let again = measure_round(server, scripts, &cases)?;
        rows = rows.into_iter().zip(again).map(|(row, again)| row.or_faster(again)).collect();
    }
    Ok(table::text(&cases, &rows))
}

fn measure_round(server: &Path, scripts: &Path, cases: &[Case]) -> io::Result<Vec<Row>> {
    let row = |name: &'static str, measure: &dyn Fn(Case) -> io::Result<Outcome>| {
        let outcomes = cases.iter().map(|case| {
            let outcome = measure(*case)?;
            eprintln!("{name}: {case:?} {outcome:?}");
            Ok(outcome)
        });
        Ok::<_, io::Error>(Row { name, outcomes: outcomes.collect::<io::Result<_>>()? })
    };
    let mut rows = Vec::new();
    for queue in queues::QUEUES {
        rows.push(row(queue.name, &|case| queue.pass(scripts, case))?);
    }
    rows.push(row("store", &|case| Ok(pass_through_store(case)))?);
    rows.push(row("end to end", &|case| pass_from_end_to_end(server, case))?);
    Ok(rows)
}

fn pass_through_store(case: Case) -> Outcome {
    let directory = tempfile::tempdir().unwrap();
    let database = Database::create(DatabaseKind::Postgres, directory.path());
    let keys: Vec<usize> = case.keys_of_units().collect();
    let cycle = store_cycle::measure(&database.url(), &keys);
    Outcome {
        done: case.units,
        out_of_order: cycle.out_of_order,
        adding_seconds: cycle.adding.as_secs_f64(),
        working_seconds: cycle.working.as_secs_f64(),
    }
}

/// Adds and works at the same time.
fn pass_from_end_to_end(server: &Path, case: Case) -> io::Result<Outcome> {
    let options = RunOptions {
        services: case.keys,
        batches: case.units,
        arrangement: case.arrangement,
        ..RunOptions::new(server, DatabaseKind::Postgres)
    };
    let run = run(&options)?;
    Ok(Outcome {
        done: run.batches,
        out_of_order: run.out_of_order.unwrap_or_default(),
        adding_seconds: 0.0,
        working_seconds: run.time.as_secs_f64(),
    })
}
