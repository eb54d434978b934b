//! Compares the store and an end-to-end run with job queues that keep order per key.

use std::{fmt::Write, io, path::Path, process::Command};

use serde::Deserialize;

use crate::{
    database::{Database, DatabaseKind},
    measurement::Measurement,
    run::run,
    run_options::RunOptions,
    store_cycle,
};

/// How long a queue may take.
const LIMIT_SECONDS: &str = "120";

/// What cannot be compared fairly.
const REMARKS: &str = "\
The queues get units that do nothing. The store's cycle stores the bytes of a batch and the ids of its
transactions, and records three steps. The end-to-end run also verifies signatures, sends each batch to a
ledger over HTTP and asks for its status. The queues add units in statements of 1,000; the end-to-end run takes
one unit a request. The queues and the store add all units before they work on them; the end-to-end run does
both at the same time. The queues run in Node, which shares the processors. Each queue and the store have
tables of their own on one PostgreSQL server; the end-to-end run has another server with the same settings.";

/// A line of the table.
#[derive(Debug, Deserialize)]
struct Line {
    name: String,
    done: usize,
    out_of_order: usize,
    adding_seconds: f64,
    working_seconds: f64,
}

/// Runs all, one after the other, and returns the table.
pub fn measure(server: &Path, queues: &Path, units: usize, keys: usize) -> io::Result<String> {
    let directory = tempfile::tempdir()?;
    let database = Database::create(DatabaseKind::Postgres, directory.path());
    let mut lines = run_queues(queues, &database.url(), units, keys)?;
    lines.push(store_line(&database, units, keys));
    drop(database);
    let options = RunOptions {
        services: keys,
        batches: units,
        ..RunOptions::new(server, DatabaseKind::Postgres)
    };
    lines.push(end_to_end_line(&run(&options)?));
    Ok(table(&lines))
}

fn run_queues(script: &Path, url: &str, units: usize, keys: usize) -> io::Result<Vec<Line>> {
    let output = Command::new("node")
        .arg(script)
        .args([url, &units.to_string(), &keys.to_string(), LIMIT_SECONDS])
        .stderr(std::process::Stdio::inherit())
        .output()?;
    if !output.status.success() {
        return Err(io::Error::other(format!(
            "node {} failed: {}",
            script.display(),
            output.status
        )));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines().map(|line| serde_json::from_str(line).map_err(io::Error::other)).collect()
}

fn store_line(database: &Database, units: usize, keys: usize) -> Line {
    let cycle = store_cycle::measure(&database.url(), units, keys);
    Line {
        name: "grid-batch: whole cycle of the store".to_owned(),
        done: units,
        out_of_order: cycle.out_of_order,
        adding_seconds: cycle.adding.as_secs_f64(),
        working_seconds: cycle.working.as_secs_f64(),
    }
}

/// The line of the end-to-end run, which adds and works at the same time.
fn end_to_end_line(run: &Measurement) -> Line {
    Line {
        name: "grid-batch: end to end, with HTTP, signatures and ledger".to_owned(),
        done: run.batches,
        out_of_order: run.out_of_order.unwrap_or_default(),
        adding_seconds: 0.0,
        working_seconds: run.time.as_secs_f64(),
    }
}

fn table(lines: &[Line]) -> String {
    let mut text = format!(
        "{:<56} {:>7} {:>12} {:>9} {:>9} {:>9}\n",
        "", "units", "out of order", "adding/s", "working/s", "both/s"
    );
    for line in lines {
        let rate = |seconds: f64| match seconds {
            0.0 => "-".to_owned(),
            _ => format!("{:.0}", line.done as f64 / seconds),
        };
        let _ = writeln!(
            text,
            "{:<56} {:>7} {:>12} {:>9} {:>9} {:>9}",
            line.name,
            line.done,
            line.out_of_order,
            rate(line.adding_seconds),
            rate(line.working_seconds),
            rate(line.adding_seconds + line.working_seconds),
        );
    }
    text + "\n" + REMARKS
}
