//! A server that starts with many open batches.

use std::{
    io,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use serde_json::{Value, json};

use crate::{
    database::Database,
    load,
    proc_stats::{memory, peak_memory},
    processes::{ask_ledger, start_ledger, start_server, wait_until},
    requests::signed_requests,
    run_options::RunOptions,
};

const LIMIT: Duration = Duration::from_secs(600);
const LIMIT_OF_A_BATCH: Duration = Duration::from_millis(5);
/// How many batches are usually measured until their commit.
pub const MEASURED: usize = 10_000;

/// What a start with open batches costs.
#[derive(Debug, Clone, Copy)]
pub struct BacklogStart {
    /// The number of open batches.
    pub open: usize,
    /// From the start of the process to the first POST.
    pub first_post: Duration,
    /// The resident memory at the first POST, in bytes.
    pub memory: u64,
    /// The peak memory after the batches that were measured.
    pub peak_memory: u64,
    /// Batches per second without intake.
    pub rate: f64,
    /// The CPU time of the server for each of those.
    pub cpu: Duration,
}

/// Adds the batches while the ledger is busy, and starts the server again when it is not.
pub fn measure(options: &RunOptions, measured: usize) -> io::Result<BacklogStart> {
    let directory = tempfile::tempdir()?;
    let mut database = Database::create(options.database, directory.path());
    let ledger = start_ledger(options)?;
    ask_ledger(ledger.address, "busy")?;
    let url = database.url();
    let start = || start_server(options, &url, ledger.address, directory.path());
    let server = start()?;
    load::send_all(&[server.address], options.connections, signed_requests(&options.plan()))?;
    server.stop();
    let open = usize::try_from(database.open_batches()?).unwrap_or_default();

    ask_ledger(ledger.address, "ready")?;
    let (started_at, started) = (SystemTime::now(), Instant::now());
    let server = start()?;
    let committed = || -> io::Result<usize> {
        ask_ledger(ledger.address, "count")?.parse().map_err(io::Error::other)
    };
    wait_until("the first batch is committed", LIMIT, || Ok(committed()? > 0))?;
    let memory = memory(server.id());
    let first_post = first_post(&ask_ledger(ledger.address, "report")?, started_at);
    let measured = open.min(measured);
    let batches = u32::try_from(measured).unwrap_or(u32::MAX);
    let limit = LIMIT + LIMIT_OF_A_BATCH * batches;
    wait_until("the batches are committed", limit, || Ok(committed()? >= measured))?;
    let time = started.elapsed().saturating_sub(first_post);
    Ok(BacklogStart {
        open,
        first_post,
        memory,
        peak_memory: peak_memory(server.id()),
        rate: measured as f64 / time.as_secs_f64(),
        cpu: server.cpu_time() / batches.max(1),
    })
}

fn first_post(report: &str, started_at: SystemTime) -> Duration {
    let first = report.lines().next().and_then(|line| line.split(' ').nth(1)?.parse().ok());
    let first = UNIX_EPOCH + Duration::from_micros(first.unwrap_or_default());
    first.duration_since(started_at).unwrap_or_default()
}

impl BacklogStart {
    /// A line for people.
    pub fn text(&self) -> String {
        let Self { open, first_post, memory, peak_memory, rate, cpu } = *self;
        let megabytes = |bytes: u64| bytes as f64 / 1e6;
        format!(
            "{open} open batches: first POST after {:.0} ms with {:.0} MB; then {rate:.0} batches/s, \
             {:.3} ms of server CPU a batch, peak {:.0} MB",
            first_post.as_secs_f64() * 1_000.0,
            megabytes(memory),
            cpu.as_secs_f64() * 1_000.0,
            megabytes(peak_memory),
        )
    }

    /// One JSON object.
    pub fn json(&self) -> Value {
        json!({
            "open_batches": self.open,
            "first_post_ms": self.first_post.as_secs_f64() * 1_000.0,
            "memory_bytes": self.memory,
            "peak_memory_bytes": self.peak_memory,
            "batches_per_second": self.rate,
            "server_cpu_ms": self.cpu.as_secs_f64() * 1_000.0,
        })
    }
}
