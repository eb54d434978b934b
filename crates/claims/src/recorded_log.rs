use grid_batch_core::ItemId;
use grid_batch_core::batches::{BatchState, Change, ChangeOutcome, Event, Stale};
use grid_batch_core::events::Recorded;
use grid_batch_core::evidence::Evidence;
use log::{error, info, warn};

/// A subscriber that logs what operators must know of: holds, further attempts, and batches that end for an unusual
/// reason.
pub fn log_recorded(entry: Recorded<'_>) {
    match entry {
        Recorded::Change { change, state, .. } => {
            log_hold(change);
            if state == BatchState::Absent {
                log_resubmission(change);
            }
        }
        Recorded::NotApplied {
            change,
            outcome: ChangeOutcome::Stale(Stale::CommittedAfterInvalid),
        } => error!(service:% = change.service_id, batch_id:% = change.batch_id;
            "the ledger reports a batch as committed that had ended as invalid: later batches of its \
             service may have been applied before it, so compare the ledger's state with what is expected"),
        Recorded::EndedWaiting(ended) => log_ended_unsent(ended),
        _ => {}
    }
}

fn log_ended_unsent(ended: &[(ItemId, BatchState)]) {
    let batches = ended.iter().filter(|(_, state)| *state == BatchState::Invalid).count();
    if batches > 0 {
        info!(batches;
            "batches ended as invalid without being sent: they depend on a transaction of an invalid batch, \
             or an operator ended what follows one; the error of each batch tells which");
    }
}

fn log_hold(change: &Change) {
    if let Some(reason) = &change.hold {
        warn!(service:% = change.service_id, batch_id:% = change.batch_id, reason = reason.as_str();
            "batch held: it waits for an operator's decision, and so do the batches that wait for it");
    }
}

/// Logs that the batch is sent again, because the ledger does not have this attempt.
fn log_resubmission(change: &Change) {
    let Event::Evidence { attempt, evidence } = change.event else { return };
    let reason = match evidence {
        Evidence::Lost => "the ledger had accepted the batch and lost it",
        Evidence::Repeatable => "the ledger has not applied the batch, and applies it only once",
        _ => "the ledger does not have the batch",
    };
    info!(service:% = change.service_id, batch_id:% = change.batch_id, attempt, reason;
        "the batch is submitted again after this attempt");
}
