//! What an open batch waits for that is neither next nor under way.

use crate::{AddressPrefix, ItemId, Timestamp, WaitCause};

/// What keeps an open batch from being submitted that has had no attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Obstacle {
    /// Its turn: the batches of its service are submitted in order.
    Order,
    /// An earlier batch of its service that it conflicts with.
    Conflict {
        /// What both declare, and at least one of them writes; `None`: it was not looked for.
        address: Option<AddressPrefix>,
    },
    /// A batch with a transaction that it depends on, also of another service.
    Dependency {
        /// The transaction.
        transaction_id: ItemId,
    },
    /// A transaction that it depends on and that no other batch has which could be submitted.
    MissingTransaction {
        /// The transaction.
        transaction_id: ItemId,
        /// Since when it is missing.
        since: Timestamp,
        /// A batch with it ended as invalid: the batch ends as well, unless the ledger has the transaction.
        invalid: bool,
    },
    /// An operator, because an invalid batch stops it.
    Halt {
        /// Since when.
        since: Timestamp,
    },
    /// The end of a pause: an operator has no new submission of its service started.
    Paused {
        /// Since when.
        since: Timestamp,
    },
    /// A lane: as many batches of its service are under way as are allowed.
    Lane,
    /// A place in the in-flight window. The batch is in a lane, and could be sent otherwise.
    InFlightWindow,
}

impl Obstacle {
    /// The cause that it is.
    pub const fn cause(&self) -> WaitCause {
        match self {
            Self::Order => WaitCause::Behind,
            Self::Conflict { .. } => WaitCause::Conflict,
            Self::Dependency { .. } => WaitCause::Dependency,
            Self::MissingTransaction { .. } => WaitCause::MissingTransaction,
            Self::Halt { .. } => WaitCause::Halt,
            Self::Paused { .. } => WaitCause::Paused,
            Self::Lane => WaitCause::Lane,
            Self::InFlightWindow => WaitCause::InFlightWindow,
        }
    }

    /// Whether a batch that is held waits for the end of its hold first: a missing transaction may never
    /// arrive, and a held batch asks for no place in the window.
    pub(crate) const fn is_after_a_hold(&self) -> bool {
        matches!(self, Self::MissingTransaction { .. } | Self::InFlightWindow)
    }

    /// Since when, if that is known.
    pub(crate) const fn since(&self) -> Option<Timestamp> {
        match self {
            Self::MissingTransaction { since, .. }
            | Self::Halt { since }
            | Self::Paused { since } => Some(*since),
            Self::Order
            | Self::Conflict { .. }
            | Self::Dependency { .. }
            | Self::Lane
            | Self::InFlightWindow => None,
        }
    }
}
