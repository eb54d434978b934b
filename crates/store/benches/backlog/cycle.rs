//! The cost of a batch in the store, from intake to its end, by the size of the groups in which the steps are done:
//! processor time of this thread and of the session's server process, and bytes of the log.

use std::fs;

use grid_batch_core::ServiceId;
use grid_batch_core::batches::{Event, LedgerStatus, NewBatch, StatusReport};
use grid_batch_core::claims::ClaimKeeper;
use grid_batch_core::events::Recorded;
use grid_batch_core::evidence::LedgerQuestionStore as _;
use grid_batch_core::ledger::Outcome;
use grid_batch_core::polling::{BatchUpdater, PendingBatchStore};
use grid_batch_store::{ClaimStore, MonitorStore};

use crate::{
    measure::{add, record, scattered_id},
    target::{SqliteLog, Target},
};

const SERVICES: usize = 100;
/// The steps of a cycle, in order.
const STEPS: [&str; 5] = ["add", "take", "accept", "pending", "commit"];

/// The costs of one batch.
pub struct Costs {
    pub group: usize,
    /// Microseconds of processor time of this thread and of the server process in each step.
    pub steps: Vec<(&'static str, f64, f64)>,
    pub log_bytes: f64,
}

impl Costs {
    /// Microseconds of this thread and of the server process in all steps.
    pub fn total(&self) -> (f64, f64) {
        let sum = |of: fn(&(&str, f64, f64)) -> f64| self.steps.iter().map(of).sum();
        (sum(|step| step.1), sum(|step| step.2))
    }
}

/// Passes batches through a store in groups of this size, each batch in a different service.
pub fn measure(target: &Target, group: usize, total: usize) -> Costs {
    let db = target.create_database();
    let claims = db.claim_all(1);
    let monitor = MonitorStore::new(claims.clone(), |_: Recorded<'_>| ());
    let first: Vec<NewBatch> = (0..SERVICES).map(batch).collect();
    add(claims.store(), &first);
    claims
        .take_services(&first.iter().map(|batch| batch.service_id.clone()).collect::<Vec<_>>())
        .expect("claims");
    end_all(&claims, &monitor, &first);
    let session = db.session();
    let mut spent = vec![(0, 0); STEPS.len()];
    let mut log = SqliteLog::default();
    let mut warm = db.log_position(&mut log);
    let (mut next, mut end) = (SERVICES, warm);
    while next < SERVICES + total + WARM_UP {
        if next < SERVICES + WARM_UP && next + group >= SERVICES + WARM_UP {
            spent.fill((0, 0));
            warm = db.log_position(&mut log);
        }
        let batches: Vec<NewBatch> = (next..next + group).map(batch).collect();
        next += group;
        step(&claims, &monitor, &batches, session, &mut spent);
        end = db.log_position(&mut log);
    }
    let per_batch = |amount: u64| amount as f64 / total as f64;
    let steps = STEPS.iter().zip(spent);
    Costs {
        group,
        steps: steps
            .map(|(name, (own, server))| {
                (*name, per_batch(own) / 1_000.0, per_batch(server) / 1_000.0)
            })
            .collect(),
        log_bytes: per_batch(end - warm),
    }
}

/// How many batches pass before the measurement starts.
const WARM_UP: usize = 1_000;

fn step(
    claims: &ClaimStore,
    monitor: &MonitorStore,
    batches: &[NewBatch],
    session: Option<u64>,
    spent: &mut [(u64, u64)],
) {
    let services: Vec<ServiceId> = batches.iter().map(|batch| batch.service_id.clone()).collect();
    let mut timed = 0;
    let mut measure = |work: &mut dyn FnMut()| {
        let before = (own_time(), server_time(session));
        work();
        spent[timed].0 += own_time() - before.0;
        spent[timed].1 += server_time(session) - before.1;
        timed += 1;
    };
    let mut taken = Vec::new();
    measure(&mut || add(claims.store(), batches));
    measure(&mut || taken = claims.take_next(&services).expect("a round"));
    assert_eq!(taken.len(), batches.len());
    measure(&mut || record(claims.store(), &taken, accepted));
    let names: Vec<String> = services.iter().map(ToString::to_string).collect();
    measure(&mut || drop(monitor.get_pending_batch_ids_of(&names, 1_000).expect("batches")));
    let committed = |batch: &NewBatch| StatusReport {
        batch_id: batch.batch_id.to_string(),
        status: LedgerStatus::Committed,
        receipts: Vec::new(),
    };
    let reports: Vec<(String, Vec<StatusReport>)> = names
        .into_iter()
        .zip(batches)
        .map(|(name, batch)| (name, vec![committed(batch)]))
        .collect();
    measure(&mut || monitor.update_groups(&reports).expect("a commit"));
}

fn end_all(claims: &ClaimStore, monitor: &MonitorStore, batches: &[NewBatch]) {
    let services: Vec<ServiceId> = batches.iter().map(|batch| batch.service_id.clone()).collect();
    let taken = claims.take_next(&services).expect("a round");
    record(claims.store(), &taken, accepted);
    record(claims.store(), &taken, |_| Event::status(LedgerStatus::Committed));
    monitor.next_batches(&services).expect("no batches");
}

fn accepted(attempt: u32) -> Event {
    Event::Outcome { attempt, outcome: Outcome::Accepted }
}

fn batch(number: usize) -> NewBatch {
    NewBatch {
        service_id: format!("{:05}-abcde::0001", number % SERVICES).parse().expect("a service id"),
        batch_id: scattered_id(number as u64),
        signer: None,
        declared_access: None,
        transaction_ids: vec![scattered_id(1 << 40 | number as u64)],
        serialized_batch: scattered_id(number as u64).as_bytes().repeat(10)[..600].to_vec(),
        label: None,
        client: None,
        declared_new: false,
        deadline: None,
        trace: None,
    }
}

/// Nanoseconds of processor time of this thread.
fn own_time() -> u64 {
    processor_time("/proc/thread-self/schedstat")
}

fn server_time(session: Option<u64>) -> u64 {
    session.map_or(0, |pid| processor_time(&format!("/proc/{pid}/schedstat")))
}

fn processor_time(file: &str) -> u64 {
    let text = fs::read_to_string(file).unwrap_or_default();
    text.split_whitespace().next().and_then(|first| first.parse().ok()).unwrap_or(0)
}
