use std::fmt;

use thiserror::Error;

use crate::batches::{BatchState, Event, Receipt, TransitionError};
use crate::{ItemId, ServiceId, Timestamp};

/// An event of one batch, to be recorded in a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The service that orders the batch.
    pub service_id: ServiceId,
    /// The batch.
    pub batch_id: ItemId,
    /// The claim's epoch in which the sender owned the service. If the service is in another epoch, the change is
    /// stale. `None` skips the check.
    pub epoch: Option<u64>,
    /// What happened. [`Event::Taken`] is not recorded this way: a
    /// [`RoundStore`](crate::queue::RoundStore) does it when it takes a round.
    pub event: Event,
    /// What went wrong, in words.
    pub error: Option<String>,
    /// When a delayed batch may be tried again.
    pub retry_at: Option<Timestamp>,
    /// Why the batch is to be held until an operator decides, if it is. The batch must be one that the poller follows,
    /// or delayed. A batch that is held already keeps its first reason.
    pub hold: Option<String>,
    /// Whether the hold ends only with a decision or a final status, so that evidence does not cause the batch to be
    /// submitted again. Such a hold replaces one that evidence could end.
    pub hold_until_decision: bool,
    /// Why the batch is invalid; empty unless it is.
    pub receipts: Vec<Receipt>,
}

impl Change {
    /// The change for `event`, in any epoch.
    pub fn new(service_id: ServiceId, batch_id: ItemId, event: Event) -> Self {
        Self {
            service_id,
            batch_id,
            epoch: None,
            event,
            error: None,
            retry_at: None,
            hold: None,
            hold_until_decision: false,
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
        /// Whether the batch has ended and its service has another open batch.
        next_waits: bool,
    },
    /// It came too late or is not possible. Nothing changed.
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
    /// An operator decided about a batch that is with a submitter.
    #[error(
        "the batch is being sent now, so it is not known yet what the ledger has; try again when the \
         attempt has ended, which is at the latest after five times ledger.request_timeout"
    )]
    WithSubmitter,
    /// An operator decided that a batch is absent, but the batch is not at the ledger anyway.
    #[error("the batch is {state}, so it is not at the ledger; it is sent when its turn comes")]
    NotAtLedger {
        /// The state of the batch.
        state: BatchState,
    },
    /// An operator decided that a batch is absent while the nodes have different states of its service.
    #[error(
        "the state roots of the nodes differ, so no batch of this circuit can commit, and a batch that is \
         sent again may be applied twice at one node; the service goes on by itself when they agree"
    )]
    StatesDiffer,
    /// An operator held a batch that an operator holds already.
    #[error("the batch is {state}, and an operator holds it already: there is nothing to hold")]
    AlreadyHeld {
        /// The state of the batch.
        state: BatchState,
    },
    /// An operator released a batch that is not held.
    #[error("the batch is {state} and not held: there is nothing to release")]
    NotHeld {
        /// The state of the batch.
        state: BatchState,
    },
    /// An operator decided about the batches that a batch stops, but it stops none.
    #[error("the batch is {state} and stops nothing; `grid-batch halts` lists the batches that do")]
    StopsNothing {
        /// The state of the batch.
        state: BatchState,
    },
    /// An operator ended the delay of a batch that is not delayed.
    #[error("the batch is {state} and not delayed: there is nothing to retry")]
    NotDelayed {
        /// The state of the batch.
        state: BatchState,
    },
    /// An operator cancelled a batch that the ledger may have.
    #[error(
        "the batch is {state} and may have been sent: it cannot be cancelled; find out what the ledger \
         did with it, and run `grid-batch decide BATCH committed --attempt N --reason TEXT`, with invalid or absent in \
         place of committed"
    )]
    MayBeAtLedger {
        /// The state of the batch.
        state: BatchState,
    },
    /// An operator decided about the batch of a withdrawal that does not wait for a decision.
    #[error(
        "the batch belongs to a withdrawal or transaction and does not wait for a decision: cancel that instead, or \
         decide about a nonce with `grid-batch nonce`"
    )]
    Withdrawal,
}

/// What an operator decides about a batch. A decision counts as evidence, so the operator must know whether the ledger
/// has the batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Decision {
    /// The ledger has applied the batch. The service continues with its next batch.
    Committed,
    /// The ledger has rejected the batch and no earlier attempt can arrive, or the batch is not to be
    /// submitted. The service continues with its next batch.
    Invalid,
    /// The ledger does not have the batch and will not receive it later. The batch is sent again.
    Absent,
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Committed => "committed",
            Self::Invalid => "invalid",
            Self::Absent => "absent",
        })
    }
}

/// A decision and why it was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperatorDecision {
    /// The decision.
    pub decision: Decision,
    /// Why, in the operator's words.
    pub reason: Option<String>,
}

impl From<Decision> for OperatorDecision {
    fn from(decision: Decision) -> Self {
        Self { decision, reason: None }
    }
}
