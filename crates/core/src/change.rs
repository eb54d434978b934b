use thiserror::Error;

use crate::{
    BatchState, Event, Evidence, HeaderId, LedgerStatus, Receipt, ServiceId, Timestamp,
    TransitionError,
};

/// An event of one batch, to be recorded in a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The service that orders the batch.
    pub service_id: ServiceId,
    /// The batch.
    pub batch_id: HeaderId,
    /// The claim's epoch in which the sender owned the service. In another epoch the change is
    /// stale. `None` skips the check.
    pub epoch: Option<u64>,
    /// What happened. [`Event::Taken`] is not recorded this way: a
    /// [`RoundStore`](crate::RoundStore) does it when it takes a round.
    pub event: Event,
    /// What went wrong, in words.
    pub error: Option<String>,
    /// When a delayed batch may be tried again.
    pub retry_at: Option<Timestamp>,
    /// Holds a batch that the poller follows, for this reason, until an operator decides. A batch
    /// that is held already keeps its first reason.
    pub hold: Option<String>,
    /// Why the batch is invalid; empty unless it is.
    pub receipts: Vec<Receipt>,
}

impl Change {
    /// The change that `event` makes, in any epoch.
    pub fn new(service_id: ServiceId, batch_id: HeaderId, event: Event) -> Self {
        Self {
            service_id,
            batch_id,
            epoch: None,
            event,
            error: None,
            retry_at: None,
            hold: None,
            receipts: Vec::new(),
        }
    }
}

/// How recording a [`Change`] ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeOutcome {
    /// It is recorded.
    Applied {
        /// The state of the batch now.
        state: BatchState,
        /// The batch has ended, and its service has another open batch.
        next_waits: bool,
    },
    /// It came too late or is not possible; nothing changed.
    Stale(Stale),
    /// The service has no such batch.
    NotFound,
}

/// Why a [`Change`] was not applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Stale {
    /// The event is not possible in the state of the batch.
    #[error(transparent)]
    Transition(#[from] TransitionError),
    /// Another instance has taken the service.
    #[error("the service is in epoch {present}; the change is of epoch {given}")]
    Epoch {
        /// The epoch of the change.
        given: u64,
        /// The service's epoch.
        present: u64,
    },
    /// The batch ended as invalid, and this is the first report that the ledger has applied it. The
    /// report is stored with the batch.
    #[error("the batch ended as invalid, and the ledger now reports it as committed")]
    CommittedAfterInvalid,
    /// An operator decided about another attempt than the present one.
    #[error("the decision is about attempt {given}; the batch is at attempt {present}")]
    DecidedOtherAttempt {
        /// The attempt that the operator looked at.
        given: u32,
        /// The attempt the batch is at.
        present: u32,
    },
    /// An operator decided about a batch that is not held.
    #[error("the batch is {state} and not held: there is nothing to decide")]
    NotHeld {
        /// The state of the batch.
        state: BatchState,
    },
}

/// What an operator decides about a held batch. It counts as evidence, so the operator must know
/// what the ledger has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// The ledger has applied the batch. The service continues with its next batch.
    Committed,
    /// The ledger has rejected the batch, and no earlier attempt can arrive. The service continues with
    /// its next batch.
    Invalid,
    /// The ledger does not have the batch and will not find it later. The batch is sent again.
    Absent,
}

impl Decision {
    /// The events that record the decision about this attempt, in order.
    ///
    /// *Invalid* also says that no earlier attempt can arrive. *Absent* does not, because an operator cannot
    /// see a request that is on its way.
    pub fn events(self, attempt: u32) -> Vec<Event> {
        match self {
            Self::Committed => vec![Event::Evidence { attempt, evidence: Evidence::Committed }],
            Self::Invalid => vec![
                Event::EarlierCannotArrive { attempt },
                Event::Status { attempt: Some(attempt), status: LedgerStatus::Invalid },
            ],
            Self::Absent => vec![Event::Evidence { attempt, evidence: Evidence::Absent }],
        }
    }
}
