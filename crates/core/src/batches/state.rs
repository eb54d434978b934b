use std::{fmt, str::FromStr};

use thiserror::Error;

use crate::Excerpt;
use crate::batches::transition::{Event, Progress, transition};

/// The status of a batch at its ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DltStatus {
    /// Tried and certainly not accepted; it is tried again later.
    Delayed,
    /// It is not known whether the ledger has the batch.
    Unknown,
    /// Accepted.
    Pending,
    /// Executed, not committed.
    Valid,
    /// Rejected; final.
    Invalid,
    /// Applied; final.
    Committed,
}

/// A text that is not a [`DltStatus`].
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{value} is not a status; the statuses are {}", DltStatus::ALL.map(DltStatus::as_str).join(", "))]
pub struct DltStatusError {
    /// The beginning of the text.
    pub value: Excerpt,
}

impl DltStatus {
    /// Every status.
    pub const ALL: [Self; 6] =
        [Self::Delayed, Self::Unknown, Self::Pending, Self::Valid, Self::Invalid, Self::Committed];

    /// The status as databases and responses write it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Delayed => "DELAYED",
            Self::Unknown => "UNKNOWN",
            Self::Pending => "PENDING",
            Self::Valid => "VALID",
            Self::Invalid => "INVALID",
            Self::Committed => "COMMITTED",
        }
    }
}

impl fmt::Display for DltStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for DltStatus {
    type Err = DltStatusError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|status| status.as_str() == text)
            .ok_or_else(|| DltStatusError { value: Excerpt::of(text) })
    }
}

/// The state of a batch: the valid pairs of `submitted` and [`DltStatus`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BatchState {
    /// Stored and never tried.
    New,
    /// With a submitter, which may have sent it.
    Submitting,
    /// Tried and certainly not accepted; it is tried again when its delay is over.
    Delayed,
    /// It may have been accepted.
    InDoubt,
    /// Tried, and either the ledger certainly does not have it or sending it again is harmless.
    Absent,
    /// Accepted by the ledger.
    Pending,
    /// Executed by the ledger, not committed.
    Valid,
    /// Rejected by the ledger. Terminal.
    Invalid,
    /// Applied by the ledger. Terminal.
    Committed,
}

/// A pair of `submitted` and [`DltStatus`] that is not a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("no batch is {} with the status {status}", if *submitted { "submitted" } else { "not submitted" })]
pub struct BatchStateError {
    /// The first half of the pair.
    pub submitted: bool,
    /// The second half.
    pub status: DltStatus,
}

impl BatchState {
    /// Every state.
    pub const ALL: [Self; 9] = [
        Self::New,
        Self::Submitting,
        Self::Delayed,
        Self::InDoubt,
        Self::Absent,
        Self::Pending,
        Self::Valid,
        Self::Invalid,
        Self::Committed,
    ];

    /// The name of the state in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Submitting => "submitting",
            Self::Delayed => "delayed",
            Self::InDoubt => "in_doubt",
            Self::Absent => "absent",
            Self::Pending => "pending",
            Self::Valid => "valid",
            Self::Invalid => "invalid",
            Self::Committed => "committed",
        }
    }

    /// The state with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == name)
    }

    /// The state with this pair.
    ///
    /// ```
    /// use grid_batch_core::batches::{BatchState, DltStatus};
    ///
    /// assert_eq!(BatchState::of(true, Some(DltStatus::Unknown)), Ok(BatchState::InDoubt));
    /// assert!(BatchState::of(false, Some(DltStatus::Committed)).is_err());
    /// ```
    pub fn of(submitted: bool, status: Option<DltStatus>) -> Result<Self, BatchStateError> {
        match (submitted, status) {
            (false, None) => Ok(Self::New),
            (true, None) => Ok(Self::Submitting),
            (false, Some(DltStatus::Delayed)) => Ok(Self::Delayed),
            (true, Some(DltStatus::Unknown)) => Ok(Self::InDoubt),
            (false, Some(DltStatus::Unknown)) => Ok(Self::Absent),
            (true, Some(DltStatus::Pending)) => Ok(Self::Pending),
            (true, Some(DltStatus::Valid)) => Ok(Self::Valid),
            (true, Some(DltStatus::Invalid)) => Ok(Self::Invalid),
            (true, Some(DltStatus::Committed)) => Ok(Self::Committed),
            (submitted, Some(status)) => Err(BatchStateError { submitted, status }),
        }
    }

    /// Whether the batch is or may be with a submitter or at the ledger.
    pub const fn submitted(self) -> bool {
        !matches!(self, Self::New | Self::Delayed | Self::Absent)
    }

    /// The status of the batch at its ledger.
    pub const fn dlt_status(self) -> Option<DltStatus> {
        match self {
            Self::New | Self::Submitting => None,
            Self::Delayed => Some(DltStatus::Delayed),
            Self::InDoubt | Self::Absent => Some(DltStatus::Unknown),
            Self::Pending => Some(DltStatus::Pending),
            Self::Valid => Some(DltStatus::Valid),
            Self::Invalid => Some(DltStatus::Invalid),
            Self::Committed => Some(DltStatus::Committed),
        }
    }

    /// Whether the state is final.
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Invalid | Self::Committed)
    }

    /// Whether the queuer may hand the batch to a submitter (a delayed one when its delay is over).
    pub fn awaits_queuer(self) -> bool {
        transition(Progress::at(self), Event::Taken).is_ok()
    }

    /// Whether the poller asks the ledger for the status of the batch.
    pub const fn awaits_poller(self) -> bool {
        matches!(self, Self::InDoubt | Self::Pending | Self::Valid)
    }
}

impl fmt::Display for BatchState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::New => "new",
            Self::Submitting => "with a submitter",
            Self::Delayed => "delayed",
            Self::InDoubt => "in doubt",
            Self::Absent => "absent",
            Self::Pending => "pending",
            Self::Valid => "valid",
            Self::Invalid => "invalid",
            Self::Committed => "committed",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_state_has_one_pair() {
        let mut states = Vec::new();
        for submitted in [false, true] {
            for status in DltStatus::ALL.map(Some).into_iter().chain([None]) {
                match BatchState::of(submitted, status) {
                    Ok(state) => {
                        assert_eq!((state.submitted(), state.dlt_status()), (submitted, status));
                        states.push(state);
                    }
                    Err(error) => {
                        assert_eq!((error.submitted, Some(error.status)), (submitted, status))
                    }
                }
            }
        }
        states.sort();
        assert_eq!(states, BatchState::ALL);
    }

    #[test]
    fn submitting_and_terminal_batches_wait_for_neither() {
        let waits_for_neither =
            |state: &BatchState| !state.awaits_queuer() && !state.awaits_poller();
        let neither: Vec<_> = BatchState::ALL.into_iter().filter(waits_for_neither).collect();
        assert_eq!(neither, [BatchState::Submitting, BatchState::Invalid, BatchState::Committed]);
    }

    #[test]
    fn state_is_found_by_its_name() {
        for state in BatchState::ALL {
            assert_eq!(BatchState::named(state.as_str()), Some(state));
        }
        assert_eq!(BatchState::named("in doubt"), None);
    }

    #[test]
    fn statuses_parse_as_they_are_written() {
        for status in DltStatus::ALL {
            assert_eq!(status.to_string().parse(), Ok(status));
        }
        let error = "committed".parse::<DltStatus>().unwrap_err().to_string();
        assert!(
            error.starts_with("\"committed\" is not a status; the statuses are DELAYED, "),
            "{error}"
        );
    }
}
