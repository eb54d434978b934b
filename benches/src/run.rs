//! One end-to-end run, from requests to recorded commits.

use std::{
    collections::BTreeMap,
    io,
    time::{Duration, Instant},
};

use crate::{
    ceilings,
    database::{Database, DatabaseUsage},
    load::{self, LoadResult},
    measurement::{LedgerReport, Measurement, Percentiles, read_report, sent_batches_of},
    proc_stats::{cpu_time_by_thread, cpu_time_of_this_thread, peak_memory, thread_count},
    processes::{Process, ask_ledger, start_ledger, start_server, wait_until},
    requests::{signed_requests, verification_cost},
    run_options::{LedgerProgram, RunOptions},
};

/// Longer than PostgreSQL takes to publish the counts of an idle connection.
const SETTLE_TIME: Duration = Duration::from_millis(1_500);
const LIMIT: Duration = Duration::from_secs(600);

/// The processes of a run.
struct Processes {
    servers: Vec<Process>,
    ledger: Process,
}

impl Processes {
    /// The part of one core that the servers use in this time.
    fn idle_cpu(&self, time: Duration) -> f64 {
        std::thread::sleep(SETTLE_TIME);
        let cpu = || self.servers.iter().map(Process::cpu_time).sum::<Duration>();
        let before = cpu();
        std::thread::sleep(time);
        (cpu() - before).as_secs_f64() / time.as_secs_f64()
    }

    fn cpu_time_by_thread(&self) -> BTreeMap<String, Duration> {
        let mut times = BTreeMap::new();
        for (name, time) in self.servers.iter().flat_map(|server| cpu_time_by_thread(server.id())) {
            *times.entry(name).or_default() += time;
        }
        times
    }
}

/// What processes have used at one moment.
struct Usage {
    servers: Duration,
    ledger: Duration,
    database: DatabaseUsage,
}

/// Runs once, end to end, with an empty database.
pub fn run(options: &RunOptions) -> io::Result<Measurement> {
    let verification = verification_cost();
    let requests = signed_requests(&options.plan());
    let sent = sent_batches_of(&requests);
    let directory = tempfile::tempdir()?;
    let mut database = Database::create(options.database, directory.path());
    let ledger = start_ledger(options)?;
    let servers = (0..options.instances)
        .map(|_| start_server(options, &database.url(), ledger.address, directory.path()))
        .collect::<io::Result<Vec<_>>>()?;
    let processes = Processes { servers, ledger };
    std::thread::sleep(SETTLE_TIME);

    database.reset_statements();
    let threads_before = processes.cpu_time_by_thread();
    let before = usage(&processes, &mut database);
    let client_before = cpu_time_of_this_thread();
    let started = Instant::now();
    let addresses: Vec<_> = processes.servers.iter().map(|server| server.address).collect();
    let LoadResult { latencies, acknowledged, refused } =
        load::send_all(&addresses, options.connections, requests)?;
    let intake_time = started.elapsed();
    let client_cpu = cpu_time_of_this_thread() - client_before;
    wait_until_recorded(options, &processes, &mut database)?;
    let time = started.elapsed();
    let after = usage(&processes, &mut database);

    let threads = processes.servers.iter().map(|server| thread_count(server.id())).sum();
    let mut server_threads = processes.cpu_time_by_thread();
    for (name, time) in threads_before {
        server_threads.entry(name).and_modify(|total| *total = total.saturating_sub(time));
    }
    let idle = (!options.idle.is_zero()).then(|| processes.idle_cpu(options.idle));
    let peak_memory = processes.servers.iter().map(|server| peak_memory(server.id())).max();
    let reports = options.ledger_program != LedgerProgram::Simulator;
    let ask = |path| ask_ledger(processes.ledger.address, path);
    let report = reports.then(|| ask("report")).transpose()?;
    let requests = reports.then(|| ask("requests")).transpose()?;
    let statements = database.statements();
    // Connections publish what they have counted when they end.
    let Processes { servers, ledger } = processes;
    servers.into_iter().for_each(Process::stop);
    std::thread::sleep(Duration::from_millis(200));
    let commits = database.usage().commits.max(after.database.commits);
    let used = DatabaseUsage { commits, ..after.database }.since(before.database);

    let ceilings = options
        .ceilings
        .then(|| ceilings::measure(options, &mut database, ledger.address))
        .transpose()?;
    let LedgerReport { turnaround, delay, out_of_order } =
        report.map(|report| read_report(&report, &sent, &acknowledged)).unwrap_or_default();
    Ok(Measurement {
        batches: options.batches,
        time,
        intake_time,
        verification,
        server_cpu: after.servers - before.servers,
        server_threads,
        threads,
        ledger_cpu: after.ledger - before.ledger,
        client_cpu,
        database: used,
        statements,
        ledger_requests: requests.and_then(|counts| {
            let (posts, statuses) = counts.split_once(' ')?;
            Some([posts.parse().ok()?, statuses.parse().ok()?])
        }),
        latency: Percentiles::of(latencies),
        turnaround,
        ledger_delay: delay,
        out_of_order,
        peak_memory: peak_memory.unwrap_or_default(),
        ceilings,
        idle,
        refused,
    })
}

fn usage(processes: &Processes, database: &mut Database) -> Usage {
    Usage {
        servers: processes.servers.iter().map(Process::cpu_time).sum(),
        ledger: processes.ledger.cpu_time(),
        database: database.usage(),
    }
}

/// Asks the ledger until all are committed, and then the database, which is more expensive. The simulator does not tell
/// how many it has committed, so the database is asked less often.
fn wait_until_recorded(
    options: &RunOptions,
    processes: &Processes,
    database: &mut Database,
) -> io::Result<()> {
    if options.ledger_program == LedgerProgram::Simulator {
        return wait_until("all commits are recorded", LIMIT, || {
            std::thread::sleep(Duration::from_millis(100));
            Ok(database.open_batches()? == 0)
        });
    }
    wait_until("all batches are committed", LIMIT, || {
        let committed = ask_ledger(processes.ledger.address, "count")?;
        Ok(committed.parse::<usize>().is_ok_and(|committed| committed >= options.batches))
    })?;
    wait_until("all commits are recorded", LIMIT, || Ok(database.open_batches()? == 0))
}
