use std::sync::Arc;

use grid_batch_claims::RecordedStream;
use grid_batch_core::{Recorded, RecordedSubscriber};
use grid_batch_poller::{LookupProgress, MissingTransactionMonitor, MissingTransactionOptions};
use grid_batch_support::Stops;

use super::base::Base;

/// Asks the ledger for transactions that batches depend on, if it has such batches. Returns the progress of these
/// questions.
pub(super) fn start(
    base: &Base<'_>,
    stream: &RecordedStream,
    parts: &mut Stops,
) -> Option<LookupProgress> {
    if !base.ledger.facts().enforces_declared_access {
        return None;
    }
    let stream = stream.clone();
    let monitor = MissingTransactionMonitor::new(
        base.claims.clone(),
        Arc::clone(&base.ledger),
        move |services| stream.recorded(Recorded::Submittable(services)),
        MissingTransactionOptions::hold_after(base.config.ledger.dependency_limit),
    );
    let progress = monitor.progress();
    parts.first_jobs([monitor.run(&base.jobs)]);
    Some(progress)
}
