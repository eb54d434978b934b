use std::{fmt, str::FromStr};

use grid_batch_core::batches::BatchState;

use crate::WithdrawalDetails;

/// The state of a withdrawal, as responses write it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WithdrawalState {
    /// It waits for earlier withdrawals of its gas admin, or is the next.
    Scheduled,
    /// A gate is closed, or its last attempt failed; it is tried again.
    Parked,
    /// It is being prepared and sent.
    Submitting,
    /// It may have been sent.
    InDoubt,
    /// It was sent but is not mined yet.
    Pending,
    /// It is mined but not final yet.
    Mined,
    /// It waits for an operator.
    Held,
    /// It was made.
    Withdrawn,
    /// It was not made.
    Failed,
}

/// How a withdrawal ended: like its batch, unless the chain or a later decision shows otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WithdrawalEnd {
    /// It was made.
    Withdrawn,
    /// It was not made.
    Failed,
}

impl WithdrawalState {
    /// Every state.
    pub const ALL: [Self; 9] = [
        Self::Scheduled,
        Self::Parked,
        Self::Submitting,
        Self::InDoubt,
        Self::Pending,
        Self::Mined,
        Self::Held,
        Self::Withdrawn,
        Self::Failed,
    ];

    /// The state of a withdrawal. A held withdrawal is `Held`, whatever the state of its batch. A withdrawal whose
    /// batch has ended but whose own end is not known is also `Held`, because it waits for an operator.
    pub fn of(details: &WithdrawalDetails) -> Self {
        match details.batch.held {
            Some(_) => Self::Held,
            None if details.is_signed_ahead() => {
                let outcome = details.nonce.as_ref().and_then(|nonce| nonce.outcome.as_ref());
                Self::of_signed_ahead(outcome.is_some())
            }
            None if details.batch.progress.state.is_terminal() => match details.end {
                Some(WithdrawalEnd::Withdrawn) => Self::Withdrawn,
                Some(WithdrawalEnd::Failed) => Self::Failed,
                None => Self::Held,
            },
            None => details.batch.progress.state.into(),
        }
    }

    /// The state of a withdrawal that was signed ahead. Its end is reported after the ends of earlier withdrawals.
    pub const fn of_signed_ahead(has_outcome: bool) -> Self {
        if has_outcome { Self::Mined } else { Self::Pending }
    }

    /// The state as responses and queries write it.
    pub const fn as_str(self) -> &'static str {
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

    /// Whether the withdrawal has ended. A failed one may be retried.
    pub const fn has_ended(self) -> bool {
        matches!(self, Self::Withdrawn | Self::Failed)
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

impl fmt::Display for WithdrawalState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for WithdrawalState {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|state| state.as_str() == text)
            .ok_or_else(|| format!("{text:?} is not a state of a withdrawal"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_parsed_from_their_names() {
        for state in WithdrawalState::ALL {
            assert_eq!(state.as_str().parse(), Ok(state));
        }
        assert!("new".parse::<WithdrawalState>().is_err());
    }

    #[test]
    fn withdrawal_has_ended_when_its_batch_has() {
        for state in BatchState::ALL {
            assert_eq!(WithdrawalState::from(state).has_ended(), state.is_terminal(), "{state}");
        }
    }
}
