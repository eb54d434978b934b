//! The result of one run.

use std::{
    collections::{BTreeMap, HashMap},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use crate::{
    ceilings::Ceilings,
    database::{DatabaseUsage, Statement},
    requests::Request,
};

/// What one run has measured.
#[derive(Debug, Clone)]
pub struct Measurement {
    /// The number of batches.
    pub batches: usize,
    /// From the first request to the last recorded commit.
    pub time: Duration,
    /// From the first request to the last `202`.
    pub intake_time: Duration,
    /// The CPU time of verifying the signatures of one batch.
    pub verification: Duration,
    /// The CPU time of all servers.
    pub server_cpu: Duration,
    /// The same by the names of threads that still run.
    pub server_threads: BTreeMap<String, Duration>,
    /// The threads of all servers at the end of the load.
    pub threads: usize,
    /// The CPU time of the ledger.
    pub ledger_cpu: Duration,
    /// The CPU time of the client.
    pub client_cpu: Duration,
    /// What the database has done.
    pub database: DatabaseUsage,
    /// The statements of the whole run, from the start of the server on.
    pub statements: Vec<Statement>,
    /// The POSTs and the questions about statuses that the ledger got, if it counts them.
    pub ledger_requests: Option<[usize; 2]>,
    /// The latency of `202`.
    pub latency: Percentiles,
    /// From the commit of a batch at the ledger to the POST of the next one of its service, where that
    /// was acknowledged before the commit.
    pub turnaround: Percentiles,
    /// From POST to commit at the ledger.
    pub ledger_delay: Percentiles,
    /// Batches that arrived at the ledger before the one before them of their service was committed, after a later
    /// one of their request, or again. The simulator does not report it.
    pub out_of_order: Option<usize>,
    /// The peak memory of one server, in bytes.
    pub peak_memory: u64,
    /// Plain work of the same kind, if it was measured.
    pub ceilings: Option<Ceilings>,
    /// The CPU of all servers when they have nothing to do, as a part of one core, if it was measured.
    pub idle: Option<f64>,
    /// Requests that were answered 429 or 503 and sent again.
    pub refused: usize,
}

/// The median, the 99th percentile and the largest of some times.
#[derive(Debug, Clone, Copy, Default)]
pub struct Percentiles {
    /// The median.
    pub median: Duration,
    /// The 99th percentile.
    pub percentile_99: Duration,
    /// The largest.
    pub worst: Duration,
}

impl Percentiles {
    /// Of these times, in any order.
    pub fn of(mut times: Vec<Duration>) -> Self {
        times.sort_unstable();
        let at = |part: usize| times.get((times.len().saturating_sub(1)) * part / 100);
        let at = |part| at(part).copied().unwrap_or_default();
        Self { median: at(50), percentile_99: at(99), worst: at(100) }
    }
}

impl Measurement {
    /// Batches per second.
    pub fn rate(&self) -> f64 {
        self.batches as f64 / self.time.as_secs_f64()
    }

    /// A total divided by the number of batches.
    pub fn per_batch(&self, total: f64) -> f64 {
        total / self.batches as f64
    }

    /// A CPU time per batch, in costs of verifying the batch.
    pub fn in_verifications(&self, total: Duration) -> f64 {
        self.per_batch(total.as_secs_f64()) / self.verification.as_secs_f64()
    }
}

/// The times of a batch at the ledger.
#[derive(Debug, Clone, Copy)]
struct LedgerTimes {
    posted: Duration,
    committed: Duration,
}

/// What the report of the ledger says; nothing by default.
#[derive(Debug, Clone, Copy, Default)]
pub struct LedgerReport {
    /// See [`Measurement::turnaround`].
    pub turnaround: Percentiles,
    /// See [`Measurement::ledger_delay`].
    pub delay: Percentiles,
    /// See [`Measurement::out_of_order`].
    pub out_of_order: Option<usize>,
}

/// Reads the report of the ledger.
pub fn read_report(
    report: &str,
    sent: &HashMap<String, SentBatch>,
    acknowledged: &HashMap<String, SystemTime>,
) -> LedgerReport {
    let mut out_of_order = 0;
    let mut last: HashMap<usize, LedgerTimes> = HashMap::new();
    let mut last_of_request: HashMap<usize, usize> = HashMap::new();
    let (mut turnarounds, mut delays) = (Vec::new(), Vec::new());
    for line in report.lines() {
        let Some((id, times)) = parse_line(line) else { continue };
        delays.push(times.committed.saturating_sub(times.posted));
        let Some(batch) = sent.get(id) else { continue };
        let before_in_request = last_of_request.insert(batch.request, batch.position);
        let is_late = before_in_request.is_some_and(|before| before >= batch.position);
        let since_1970 = |time: &SystemTime| time.duration_since(UNIX_EPOCH).unwrap_or_default();
        let acknowledged = acknowledged.get(id).map(since_1970).unwrap_or_default();
        let Some(before) = last.insert(batch.group, times) else { continue };
        out_of_order += usize::from(is_late || times.posted < before.committed);
        if acknowledged <= before.committed {
            turnarounds.push(times.posted.saturating_sub(before.committed));
        }
    }
    let [turnaround, delay] = [turnarounds, delays].map(Percentiles::of);
    LedgerReport { turnaround, delay, out_of_order: Some(out_of_order) }
}

fn parse_line(line: &str) -> Option<(&str, LedgerTimes)> {
    let mut words = line.split(' ');
    let id = words.next()?;
    let mut time = || Some(Duration::from_micros(words.next()?.parse().ok()?));
    Some((id, LedgerTimes { posted: time()?, committed: time()? }))
}

/// The request that a batch is sent with, and its position in it.
#[derive(Debug, Clone, Copy)]
pub struct SentBatch {
    group: usize,
    request: usize,
    position: usize,
}

/// The request and position of each batch.
pub fn sent_batches_of(requests: &[Request]) -> HashMap<String, SentBatch> {
    let mut sent = HashMap::new();
    for (number, request) in requests.iter().enumerate() {
        for (position, id) in request.batch_ids.iter().enumerate() {
            let batch = SentBatch { group: request.group, request: number, position };
            sent.insert(id.clone(), batch);
        }
    }
    sent
}

#[cfg(test)]
mod tests {
    use super::*;

    /// These batches. Each group is one request.
    fn sent_batches<const N: usize>(
        batches: [(&str, usize, usize); N],
    ) -> HashMap<String, SentBatch> {
        let batch = |(id, group, position): (&str, usize, usize)| {
            (id.to_owned(), SentBatch { group, request: group, position })
        };
        batches.map(batch).into()
    }

    #[test]
    fn overlaps_swaps_and_repeats_are_out_of_order() {
        let sent = sent_batches([("a", 0, 0), ("b", 0, 1), ("c", 0, 2)]);
        for (report, expected) in [
            ("a 10 20\nb 21 30\nc 31 40\n", 0),
            ("a 10 20\nb 19 30\nc 31 40\n", 1),
            ("b 10 20\na 21 30\nc 31 40\n", 1),
            ("a 10 20\nb 21 30\na 31 40\n", 1),
            ("a 10 20\na 10 20\nb 21 30\n", 1),
        ] {
            let read = read_report(report, &sent, &HashMap::new());
            assert_eq!(read.out_of_order, Some(expected), "{report}");
        }
    }

    #[test]
    fn turnaround_is_measured_where_the_next_batch_was_waiting() {
        let sent = sent_batches([("a", 0, 0), ("b", 0, 1), ("c", 1, 0), ("d", 0, 2)]);
        let at = |micros| UNIX_EPOCH + Duration::from_micros(micros);
        let acknowledged = [("a", 1), ("b", 2), ("c", 3), ("d", 90)];
        let acknowledged = acknowledged.map(|(id, time)| (id.to_owned(), at(time))).into();
        let report = "a 10 20\nc 11 21\nb 25 35\nd 95 99\n";
        let read = read_report(report, &sent, &acknowledged);
        assert_eq!(read.turnaround.worst, Duration::from_micros(5));
        assert_eq!(read.delay.median, Duration::from_micros(10));
        assert_eq!(read.out_of_order, Some(0));
    }
}
