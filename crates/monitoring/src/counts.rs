use grid_batch_claims::ChangeCounts;
use grid_batch_submitter::SubmitterStats;

/// What happened to batches since the server was started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ServerCounts {
    /// How many attempts were made: how often a batch was handed to the submitter.
    pub submitted: u64,
    /// How often a batch was sent although a node may have received it before.
    pub sent_again: u64,
    /// Attempts after which the ledger certainly does not have the batch. The batch was delayed.
    pub delayed: u64,
    /// Attempts after which the ledger may have the batch.
    pub in_doubt: u64,
    /// Batches that were proved to be absent from the ledger. They are submitted again.
    pub absent: u64,
    /// Batches held for an operator.
    pub held: u64,
    /// Batches that ended as committed.
    pub committed: u64,
    /// Batches that ended as invalid.
    pub invalid: u64,
    /// Batches that ended as invalid and were reported as committed later. If this is not zero, an operator must look
    /// at it.
    pub committed_after_invalid: u64,
}

impl ServerCounts {
    /// Combines the counts of these parts.
    pub fn new(submitter: SubmitterStats, changes: ChangeCounts) -> Self {
        let ChangeCounts {
            delayed,
            in_doubt,
            absent,
            held,
            committed,
            invalid,
            committed_after_invalid,
            stale: _,
        } = changes;
        Self {
            submitted: submitter.taken,
            sent_again: submitter.sent_again,
            delayed,
            in_doubt,
            absent,
            held,
            committed,
            invalid,
            committed_after_invalid,
        }
    }
}
