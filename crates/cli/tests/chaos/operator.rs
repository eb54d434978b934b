//! The operator, who reads the ledger's record and decides about held batches, or releases them.

use std::time::Duration;

use grid_batch_core::batches::{ChangeOutcome, Decision, StoredBatch};
use grid_batch_core::{Clock, SystemClock, Timestamp};
use grid_batch_ledger_sim::{decision_about, ledger_results};
use grid_batch_store::{Store, StoreError, StoreOptions};

use crate::{harness::ChaosHarness, settings::TOTAL_LIMIT};

/// Longer than a submission and the ledger's processing of it.
const SAFETY_MARGIN: Duration = TOTAL_LIMIT.saturating_mul(3);

/// Decides about held batches at intervals, until the stop is requested.
pub fn decide_held_batches(harness: &ChaosHarness) {
    let mut store = None;
    while harness.stop_operator.sleep(Duration::from_millis(100)) {
        // The database may be unavailable; the next iteration tries again.
        if store.is_none() {
            store = Store::open(&harness.postgres.url().parse().unwrap(), store_options()).ok();
        }
        if let Some(store) = &store {
            let _ = decide_once(harness, store);
        }
    }
}

fn store_options() -> StoreOptions {
    StoreOptions { connections: 2, lock_timeout: Duration::from_secs(1), ..StoreOptions::default() }
}

fn decide_once(harness: &ChaosHarness, store: &Store) -> Result<(), StoreError> {
    // The times are read before the record: a batch that was sent before them is in the record.
    let (now, since_pause) = (SystemClock.now(), harness.events.time_since_last_pause());
    let held = store.held_batches(None, 1_000)?;
    if held.is_empty() {
        return Ok(());
    }
    let results = ledger_results(&harness.ledger.record());
    for batch in held {
        let (service_id, batch_id) = (&batch.service_id, &batch.batch_id);
        let decision = decision_about(&batch, results.get(batch_id).copied());
        let (outcome, event) = match decision {
            Some(Decision::Absent) if !cannot_be_sent(&batch, now, since_pause) => continue,
            Some(decision) => {
                let outcome =
                    store.decide(service_id, batch_id, batch.progress.attempts, decision)?;
                (outcome, decided_event(decision))
            }
            None => {
                let reason = Some("the ledger's record does not have it");
                (store.release_batch(service_id, batch_id, reason)?, "held, released")
            }
        };
        if let ChangeOutcome::Applied { .. } = outcome {
            harness.events.count(event);
            harness.events.waited_for_operator(service_id, taken_at(&batch));
        }
    }
    Ok(())
}

fn decided_event(decision: Decision) -> &'static str {
    match decision {
        Decision::Committed => "held, decided: committed",
        Decision::Invalid => "held, decided: invalid",
        Decision::Absent => "held, decided: absent",
    }
}

/// Whether no process can send the batch any more: each one that took it has ended, or the time of
/// a whole submission has passed since it was taken and since the last pause.
fn cannot_be_sent(batch: &StoredBatch, now: Timestamp, since_pause: Duration) -> bool {
    now.since(taken_at(batch)) >= SAFETY_MARGIN && since_pause >= SAFETY_MARGIN
}

fn taken_at(batch: &StoredBatch) -> Timestamp {
    batch.submitted_at.unwrap_or(batch.created_at)
}
