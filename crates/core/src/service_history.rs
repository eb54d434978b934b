use crate::{ItemId, ServiceId, monitor::BatchResult};

/// What a store knows of the batches that a service has ever committed.
///
/// Some ledgers apply a batch again that arrives again. Their adapters use this to find out whether a batch is
/// new: they alone know what their nodes remember.
pub trait ServiceHistory: Send + Sync {
    /// Makes the store refuse batches with past transactions, and end a batch as committed of which all transactions
    /// are past.
    fn refuse_past_transactions(&self);

    /// Reads what is known of the history of a service, for a batch that is to be sent.
    fn read_history(&self, service_id: &ServiceId, batch_id: &ItemId) -> BatchResult<HistoryFacts>;

    /// Whether every batch that the service has committed is accounted for; `None`: not known yet.
    fn is_history_known(&self, service_id: &ServiceId) -> BatchResult<Option<bool>>;

    /// Records whether this store, together with what the nodes can still show, accounts for every batch that
    /// the service has committed.
    fn set_history_known(&self, service_id: &ServiceId, is_known: bool) -> BatchResult<()>;

    /// Records transactions that the service has applied with batches that are not stored.
    fn add_applied(&self, service_id: &ServiceId, transactions: &[ItemId]) -> BatchResult<()>;

    /// A number that changes when the store notices that it went back to an earlier state. What was recorded
    /// before may be lost then.
    fn generation(&self) -> i64;
}

/// What a store knows of the history of a service.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HistoryFacts {
    /// Whether every batch that the service has committed is accounted for; `None`: not known yet.
    pub is_known: Option<bool>,
    /// A committed batch that had ended before the last committed batch was taken. The history was known when
    /// the last committed batch was sent. So a node that still reports the anchor still reports everything that it
    /// has committed since the history was known.
    pub anchor: Option<ItemId>,
    /// The ledger cannot have committed the batch before its first attempt: its client or an operator has said
    /// so, or that was proved before an earlier attempt which a node may have accepted.
    pub is_new: bool,
}
