//! The table of `docs/performance.md`.

use std::{fmt::Write, io, path::Path, process::Command, time::Duration};

use serde_json::{Value, json};

use crate::{
    backlog::{self, BacklogStart},
    comparison::{DELAYS, SERVICES},
    database::DatabaseKind::{self, Postgres, Sqlite},
    ledger::LedgerKind,
    measurement::Measurement,
    report, run,
    run_options::{LedgerProgram, RunOptions},
};

/// How much is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableSize {
    /// Enough to see that it works.
    Quick,
    /// A few minutes.
    Usual,
    /// Up to 100,000 services, payloads of 1 MB, 8 instances and 1,000,000 open batches.
    Full,
}

/// The rows of the table.
pub struct Table {
    runs: Vec<(RunOptions, Measurement)>,
    starts: Vec<(RunOptions, BacklogStart)>,
}

/// Measures all rows, each several times, and keeps the run with the median rate.
pub fn measure(server: &Path, size: TableSize, rounds: usize) -> io::Result<Table> {
    let rounds = if size == TableSize::Quick { 1 } else { rounds.max(1) };
    let mut runs = Vec::new();
    for options in configurations(server, size) {
        let mut results =
            (0..rounds).map(|_| run::run(&options)).collect::<io::Result<Vec<_>>>()?;
        results.sort_by(|a, b| a.rate().total_cmp(&b.rate()));
        let median = results.swap_remove(results.len() / 2);
        eprintln!("{}", row(&options, &median));
        runs.push((options, median));
    }
    let mut starts = Vec::new();
    for options in backlogs(server, size) {
        let start = backlog::measure(&options, backlog::MEASURED)?;
        eprintln!("{}", start.text());
        starts.push((options, start));
    }
    Ok(Table { runs, starts })
}

fn base(server: &Path, database: DatabaseKind) -> RunOptions {
    RunOptions { batches: 4_000, ..RunOptions::new(server, database) }
}

fn configurations(server: &Path, size: TableSize) -> Vec<RunOptions> {
    let mut all = Vec::new();
    for database in [Sqlite, Postgres] {
        all.extend(by_services_and_delay(server, database));
        all.extend(beside_simulator(server, database));
        all.extend(special(server, database, size));
    }
    if size == TableSize::Quick {
        all.iter_mut().for_each(|options| options.batches = (options.batches / 20).max(20));
    }
    all
}

fn by_services_and_delay(server: &Path, database: DatabaseKind) -> Vec<RunOptions> {
    let of_delay = |delay| SERVICES.map(|services| base(server, database).sized(services, delay));
    DELAYS.into_iter().flat_map(of_delay).collect()
}

/// Beside the simulator that users have, and on Sawtooth, where services are addresses that batches change.
fn beside_simulator(server: &Path, database: DatabaseKind) -> Vec<RunOptions> {
    let ledger_program = LedgerProgram::Simulator;
    let simulated = |services| RunOptions {
        ledger_program,
        ..base(server, database).sized(services, DELAYS[0])
    };
    let ledger = LedgerKind::Sawtooth;
    let sawtooth = |delay| RunOptions { ledger, ..base(server, database).sized(1_000, delay) };
    let sawtooth_runs = DELAYS.map(sawtooth);
    [1, 100, 1_000].map(simulated).into_iter().chain(sawtooth_runs).collect()
}

fn special(server: &Path, database: DatabaseKind, size: TableSize) -> Vec<RunOptions> {
    let base = base(server, database);
    let idle = Duration::from_secs(5);
    let mut all = vec![
        RunOptions { services: 1_000, ceilings: true, idle, ..base.clone() },
        RunOptions { events: false, batches: 1_000, ..base.clone() },
        RunOptions { connections: 1, batches: 1_000, ..base.clone() },
        RunOptions { batches_per_request: 10, ..base.clone() },
        RunOptions { payload: 100_000, batches: 500, ..base.clone() },
    ];
    if database == Postgres {
        let instances = if size == TableSize::Full { &[2, 4, 8][..] } else { &[2] };
        all.extend(instances.iter().map(|&instances| RunOptions { instances, ..base.clone() }));
    }
    if size == TableSize::Full {
        let (services, event_sockets) = (100_000, Some(1_000));
        all.extend([
            RunOptions { connections: 64, ..base.clone() },
            RunOptions { services, batches: 200_000, event_sockets, ..base.clone() },
            RunOptions { payload: 1_000_000, batches: 100, ..base },
        ]);
    }
    all
}

fn backlogs(server: &Path, size: TableSize) -> Vec<RunOptions> {
    let (batches, services) = match size {
        TableSize::Quick => (500, 100),
        TableSize::Usual => (20_000, 1_000),
        TableSize::Full => (1_000_000, 1_000),
    };
    let backlog = |database| RunOptions {
        batches,
        services,
        batches_per_request: 100,
        settings: vec![("intake.open_batches".to_owned(), "1000000".to_owned())],
        ..base(server, database)
    };
    [Sqlite, Postgres].map(backlog).into()
}

/// The table for people.
pub fn text(table: &Table) -> String {
    let mut text = format!("Code: {}.\n\n{}", code(), header());
    for (options, run) in &table.runs {
        let _ = write!(text, "\n{}", row(options, run));
    }
    text.push_str(
        "\n\nCPU in costs of verifying a batch. requests: to the ledger a batch. turnaround: ms from a commit to the next POST of the \
         service, 50 % and 99 %;\n202: ms, 50 % and 99 %. ceiling: rate beside the slower of \
         plain verified inserts and plain POSTs.\n",
    );
    for (options, start) in &table.starts {
        let _ = write!(text, "\n{}: {}", options.database.name(), start.text());
    }
    text
}

/// The commit that was measured.
fn code() -> String {
    let described = Command::new("git").args(["describe", "--always", "--dirty"]).output();
    let described = described.ok().filter(|output| output.status.success());
    described.map_or("unknown".to_owned(), |output| {
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    })
}

fn header() -> String {
    format!(
        "{:<54} {:>9} {:>7} {:>7} {:>7} {:>9} {:>8} {:>8} {:>7} {:>7} {:>13} {:>13} {:>6} {:>7} {:>8}",
        "",
        "batches/s",
        "server",
        "db",
        "ledger",
        "requests",
        "commits",
        "stmts",
        "rows",
        "log B",
        "turnaround",
        "202",
        "MB",
        "idle %",
        "ceiling",
    )
}

fn row(options: &RunOptions, run: &Measurement) -> String {
    let optional = |value: Option<f64>, digits: usize| {
        value.map_or("-".to_owned(), |value| format!("{value:.digits$}"))
    };
    let per_batch = |count: Option<u64>| count.map(|count| run.per_batch(count as f64));
    let pair = |times: crate::measurement::Percentiles| {
        let ms = |time: Duration| time.as_secs_f64() * 1_000.0;
        format!("{:.1} {:.1}", ms(times.median), ms(times.percentile_99))
    };
    format!(
        "{:<54} {:>9.0} {:>7.1} {:>7} {:>7.1} {:>9} {:>8.3} {:>8} {:>7} {:>7.0} {:>13} {:>13} {:>6.0} {:>7} {:>8}",
        name(options),
        run.rate(),
        run.in_verifications(run.server_cpu),
        optional(run.database.cpu.map(|cpu| run.in_verifications(cpu)), 1),
        run.in_verifications(run.ledger_cpu),
        optional(
            run.ledger_requests.map(|[posts, polls]| run.per_batch((posts + polls) as f64)),
            2
        ),
        run.per_batch(run.database.commits as f64),
        optional(per_batch(run.database.statements), 2),
        optional(per_batch(run.database.rows), 1),
        run.per_batch(run.database.log_bytes as f64),
        run.out_of_order.map_or("-".to_owned(), |_| pair(run.turnaround)),
        pair(run.latency),
        run.peak_memory as f64 / 1e6,
        optional(run.idle.map(|idle| idle * 100.0), 2),
        optional(run.ceilings.map(|ceilings| run.rate() / ceilings.slower()), 2),
    )
}

/// The database, the number of services, and what differs from the usual.
fn name(options: &RunOptions) -> String {
    let mut name = format!("{}, {} services", options.database.name(), options.services);
    let mut add = |is_unusual: bool, text: String| {
        if is_unusual {
            let _ = write!(name, ", {text}");
        }
    };
    add(options.delay > DELAYS[0], format!("{:?}", options.delay));
    add(options.ledger == LedgerKind::Sawtooth, "sawtooth".to_owned());
    add(options.ledger_program == LedgerProgram::Simulator, "simulator".to_owned());
    add(!options.events, "no events".to_owned());
    add(options.connections != 32, format!("{} connections", options.connections));
    add(options.batches_per_request > 1, format!("{} a request", options.batches_per_request));
    add(options.payload != 200, format!("{} B", options.payload));
    add(options.instances > 1, format!("{} instances", options.instances));
    name
}

/// The same as JSON.
pub fn json(table: &Table) -> Value {
    let runs = table.runs.iter().map(|(options, run)| report::json(options, run));
    let starts = table.starts.iter().map(|(options, start)| {
        let mut value = start.json();
        value["database"] = options.database.name().into();
        value
    });
    json!({ "runs": runs.collect::<Vec<_>>(), "starts": starts.collect::<Vec<_>>() })
}
