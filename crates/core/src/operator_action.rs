use crate::StoredBatch;

/// What an operator can do about a batch or a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OperatorAction {
    /// Try it now.
    Retry,
    /// End the hold.
    Release,
    /// Send it again: the ledger does not have it.
    Resubmit,
    /// End it, as committed or as invalid.
    End,
    /// End it without sending it.
    Cancel,
    /// Let what it stops go on.
    Continue,
    /// End what it stops.
    EndFollowing,
    /// End the pause of the service.
    Resume,
}

impl OperatorAction {
    /// The verb in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Retry => "retry",
            Self::Release => "release",
            Self::Resubmit => "resubmit",
            Self::End => "end",
            Self::Cancel => "cancel",
            Self::Continue => "continue",
            Self::EndFollowing => "end_following",
            Self::Resume => "resume",
        }
    }

    /// What it does.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Retry => "try it now",
            Self::Release => "end the hold, so that the usual rules apply",
            Self::Resubmit => "send it again, because the ledger does not have it",
            Self::End => "end it as committed or as invalid, because the ledger has decided",
            Self::Cancel => "end it as invalid without sending it",
            Self::Continue => "let the batches go on that it stops",
            Self::EndFollowing => "end the batches that it stops, without sending them",
            Self::Resume => "end the pause of the service",
        }
    }
}

/// What an operator can do, and about which batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PossibleAction<'a> {
    /// What.
    pub action: OperatorAction,
    /// About which batch; `None`: about the service.
    pub batch: Option<&'a StoredBatch>,
}
