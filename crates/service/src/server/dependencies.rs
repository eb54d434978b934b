use std::sync::Arc;

use grid_batch_claims::RecordedStream;
use grid_batch_core::{Ledger, Recorded, RecordedSubscriber};
use grid_batch_poller::{
    LookupProgress, MissingTransactionMonitor, MissingTransactionOptions,
    RunningMissingTransactionMonitor,
};
use grid_batch_store::ClaimStore;

use crate::{Config, StartError};

/// Asks the ledger for transactions that batches depend on, if it has such batches. Also returns the progress of these
/// questions.
pub(super) fn start(
    config: &Config,
    ledger: &Arc<dyn Ledger>,
    claims: &ClaimStore,
    stream: &RecordedStream,
) -> Result<Option<(RunningMissingTransactionMonitor, LookupProgress)>, StartError> {
    if !ledger.facts().enforces_declared_access {
        return Ok(None);
    }
    let stream = stream.clone();
    let monitor = MissingTransactionMonitor::new(
        claims.clone(),
        Arc::clone(ledger),
        move |services| stream.recorded(Recorded::Submittable(services)),
        MissingTransactionOptions::hold_after(config.ledger.dependency_limit),
    );
    let progress = monitor.progress();
    Ok(Some((monitor.run()?, progress)))
}
