use grid_batch_withdrawals::WithdrawalDetails;
use std::fmt;

use grid_batch_core::BatchState;

/// Where a withdrawal stands, as clients are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
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

impl Standing {
    pub(crate) fn of(story: &WithdrawalDetails) -> Self {
        match story.batch.held {
            Some(_) => Self::Held,
            None => story.batch.progress.state.into(),
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

impl From<BatchState> for Standing {
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

impl fmt::Display for Standing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
