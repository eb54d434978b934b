//! The person who looks into the ledger's record, and decides what no machine can.

use std::{collections::HashMap, time::Duration};

use grid_batch_core::{
    ChangeOutcome, Clock, Decision, HeaderId, StoredBatch, SystemClock, Timestamp,
};
use grid_batch_ledger_sim::Verdict;
use grid_batch_store::{Store, StoreError, StoreOptions};

use crate::{bench::Bench, settings::TOTAL_LIMIT};

/// Longer than a submission, and than what the ledger does with one.
const CAUTION: Duration = TOTAL_LIMIT.saturating_mul(3);

/// Looks again and again, until everything has ended.
pub fn decide(bench: &Bench) {
    let mut store = None;
    while bench.everything.sleep(Duration::from_millis(100)) {
        // The database comes and goes; the person looks again.
        if store.is_none() {
            store = Store::open(&bench.server.url().parse().unwrap(), patient()).ok();
        }
        if let Some(store) = &store {
            let _ = look(bench, store);
        }
    }
}

fn patient() -> StoreOptions {
    StoreOptions { connections: 2, lock_timeout: Duration::from_secs(1), ..StoreOptions::default() }
}

fn look(bench: &Bench, store: &Store) -> Result<(), StoreError> {
    // In this order: what was sent before is in the record by the time that it is read.
    let (now, in_motion_for) = (SystemClock.now(), bench.diary.in_motion_for());
    let held = store.held_batches(None, 1_000)?;
    if held.is_empty() {
        return Ok(());
    }
    let verdicts = verdicts(bench);
    for batch in held {
        let (decision, counted) = match verdicts.get(&batch.batch_id) {
            Some(Verdict::Applied) => (Decision::Committed, "held, decided: committed"),
            Some(Verdict::Invalid) => (Decision::Invalid, "held, decided: invalid"),
            None if nobody_sends(&batch, now, in_motion_for) => {
                (Decision::Absent, "held, decided: absent")
            }
            None => continue,
        };
        if let ChangeOutcome::Applied { .. } =
            store.decide(&batch.service_id, &batch.batch_id, decision)?
        {
            bench.diary.count(counted);
            bench.diary.waited_for_person(&batch.service_id, since(&batch));
        }
    }
    Ok(())
}

/// No process can send the batch any more: each of those that could has ended, or has had all the
/// time that a submission may take since it was handed out, and since the last pause of any.
fn nobody_sends(batch: &StoredBatch, now: Timestamp, in_motion_for: Duration) -> bool {
    now.since(since(batch)) >= CAUTION && in_motion_for >= CAUTION
}

fn since(batch: &StoredBatch) -> Timestamp {
    batch.submitted_at.unwrap_or(batch.created_at)
}

/// What the record says of each batch: that it was applied, where it says both.
pub fn verdicts(bench: &Bench) -> HashMap<HeaderId, Verdict> {
    let mut verdicts = HashMap::new();
    for entry in bench.ledger.record() {
        let known = verdicts.entry(entry.batch_id).or_insert(entry.verdict);
        if entry.verdict == Verdict::Applied {
            *known = Verdict::Applied;
        }
    }
    verdicts
}
