use crate::{BatchResult, ItemId, ServiceId};

/// What a store knows about the batches that services have ever committed.
///
/// Some ledgers apply a batch again if it arrives again. Their adapters use the methods with default bodies to find out
/// whether a batch is new, because only they know what their nodes remember. By default nothing is known.
#[cfg_attr(feature = "mocks", mockall::automock)]
pub trait CommitHistory: Send + Sync {
    /// The last batch that was committed in each lane of the service, if it is still stored.
    ///
    /// Earlier batches of a lane were committed before its last one was sent. A node that has applied all of `before`
    /// and `since` has therefore applied every batch of the service that had ended before this one was taken.
    fn committed_before(
        &self,
        service_id: &ServiceId,
        batch_id: &ItemId,
    ) -> BatchResult<CommittedBefore>;

    /// Whether a batch of the service was ever committed.
    fn has_committed(&self, service_id: &ServiceId) -> BatchResult<bool>;

    /// Makes the store refuse batches that contain a past transaction, and end a batch as committed if all its
    /// transactions are past.
    fn refuse_past_transactions(&self) {}

    /// Reads what is known about the history of a service, for a batch that is to be sent.
    fn read_history(
        &self,
        _service_id: &ServiceId,
        _batch_id: &ItemId,
    ) -> BatchResult<HistoryFacts> {
        Ok(HistoryFacts::default())
    }

    /// Whether every batch that the service has committed is accounted for; `None`: not known yet.
    fn is_history_known(&self, _service_id: &ServiceId) -> BatchResult<Option<bool>> {
        Ok(None)
    }

    /// Records whether this store, together with what the nodes can still show, accounts for every batch that
    /// these services have committed.
    fn set_history_known(&self, _services: &[ServiceId], _is_known: bool) -> BatchResult<()> {
        Ok(())
    }

    /// Records transactions that the service has applied with batches that are not stored.
    fn add_applied(&self, _service_id: &ServiceId, _transactions: &[ItemId]) -> BatchResult<()> {
        Ok(())
    }

    /// A number that changes when the store notices that it went back to an earlier state. Earlier records may be lost
    /// then.
    fn generation(&self) -> i64 {
        0
    }
}

/// The last batch that was committed in each lane of a service.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommittedBefore {
    /// Those that had ended before the batch in question was taken.
    pub before: Vec<ItemId>,
    /// Those that ended later. Earlier batches of their lanes may have been committed before the batch in question was
    /// taken.
    pub since: Vec<ItemId>,
}

/// What a store knows about the history of a service.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HistoryFacts {
    /// Whether every batch that the service has committed is accounted for; `None`: not known yet.
    pub is_known: Option<bool>,
    /// A committed batch that had ended before the last committed batch was taken. The history was known when
    /// the last committed batch was sent. So a node that still reports the anchor still reports everything that it
    /// has committed since the history was known.
    pub anchor: Option<ItemId>,
    /// Whether it is certain that the ledger did not commit the batch before its first attempt: its client or an
    /// operator has said so, or it was proved before an earlier attempt, which a node may have accepted.
    pub is_new: bool,
}
