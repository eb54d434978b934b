use grid_batch_core::BatchState;
use grid_batch_withdrawals::WithdrawalDetails;

/// The state of a withdrawal, as the interface names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WithdrawalState {
    Scheduled,
    Parked,
    Submitting,
    InDoubt,
    Pending,
    Mined,
    Held,
    Withdrawn,
    Failed,
}

impl WithdrawalState {
    pub(crate) fn of(details: &WithdrawalDetails) -> Self {
        match details.batch.held {
            Some(_) => Self::Held,
            None => details.batch.progress.state.into(),
        }
    }

    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Scheduled => "scheduled",
            Self::Parked => "parked",
            Self::Submitting => "submitting",
            Self::InDoubt => "in_doubt",
            Self::Pending => "pending",
            Self::Mined => "mined",
            Self::Held => "held",
            Self::Withdrawn => "withdrawn",
            Self::Failed => "failed",
        }
    }
}

impl From<BatchState> for WithdrawalState {
    fn from(state: BatchState) -> Self {
        match state {
            BatchState::New => Self::Scheduled,
            BatchState::Delayed => Self::Parked,
            BatchState::Submitting | BatchState::Absent => Self::Submitting,
            BatchState::InDoubt => Self::InDoubt,
            BatchState::Pending => Self::Pending,
            BatchState::Valid => Self::Mined,
            BatchState::Committed => Self::Withdrawn,
            BatchState::Invalid => Self::Failed,
        }
    }
}
