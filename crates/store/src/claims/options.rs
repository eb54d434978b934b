use std::{path::PathBuf, time::Duration};

use grid_batch_core::{InstanceId, Timestamp};
use thiserror::Error;

/// How an instance claims services.
///
/// ```
/// use std::time::Duration;
/// use grid_batch_store::ClaimOptions;
///
/// // Of one phase: an instance that has not renewed for five minutes is given up for dead.
/// let lease = Duration::from_secs(300);
/// let options = ClaimOptions { expiry_1: lease, expiry_2: lease, ..ClaimOptions::default() };
/// assert!(options.check().is_ok());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimOptions {
    /// A name that the instance keeps from start to start, and no other has; `None`: it has none,
    /// and after a crash its services wait for the expiries.
    ///
    /// It is a promise: where the first expiry of an earlier run of the name is past, that run is
    /// taken for gone, whatever it was sending.
    pub name: Option<String>,
    /// So long after a renewal others may take services of which nothing is being sent.
    pub expiry_1: Duration,
    /// So long after a renewal others may take all of them.
    pub expiry_2: Duration,
    /// From the moment that a batch is marked, the longest until its submitter has certainly stopped
    /// sending: waiting in the queue and all retries included.
    pub longest_submission: Duration,
    /// How many services change hands in one commit, at most.
    pub step: usize,
    /// Take no more than a fair share of all services, and give back what is more.
    pub even_out: bool,
}

impl Default for ClaimOptions {
    fn default() -> Self {
        Self {
            name: None,
            expiry_1: Duration::from_secs(30),
            expiry_2: Duration::from_secs(180),
            longest_submission: Duration::from_secs(120),
            step: 500,
            even_out: false,
        }
    }
}

impl ClaimOptions {
    /// Whether a healthy instance is never overtaken while it sends.
    ///
    /// What is marked before the first expiry must be sent by the second. Where the two are equal,
    /// batches are marked only as long as enough is left.
    pub fn check(&self) -> Result<(), ClaimError> {
        let Self { expiry_1, expiry_2, longest_submission, .. } = *self;
        let Some(between) = expiry_2.checked_sub(expiry_1) else {
            return Err(ClaimError::Reversed { expiry_1, expiry_2 });
        };
        match between.is_zero() {
            true if expiry_2 > longest_submission => Ok(()),
            false if between >= longest_submission => Ok(()),
            _ => Err(ClaimError::Overtaking { expiry_1, expiry_2, longest_submission }),
        }
    }
}

/// Why an instance cannot claim services.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ClaimError {
    /// The expiries stand in the wrong order.
    #[error(
        "the second expiry of claims, {expiry_2:?}, comes before the first, {expiry_1:?}; \
         it must not"
    )]
    Reversed {
        /// The first expiry.
        expiry_1: Duration,
        /// The second expiry.
        expiry_2: Duration,
    },
    /// An instance could lose a service while it sends.
    #[error(
        "a submission may take {longest_submission:?}, and claims expire after {expiry_1:?} and \
         {expiry_2:?}; between the two, or before one that is both, a whole submission must fit"
    )]
    Overtaking {
        /// The first expiry.
        expiry_1: Duration,
        /// The second expiry.
        expiry_2: Duration,
        /// How long a submission takes at most.
        longest_submission: Duration,
    },
    /// Another instance has the name, and lives.
    #[error(
        "the instance {holder} has the name {name:?}, and lives until {} at least \
         (microseconds since 1970, by the database's clock); stop it, or wait",
        until.as_micros()
    )]
    NameInUse {
        /// The name.
        name: String,
        /// Who has it.
        holder: InstanceId,
        /// Its first expiry.
        until: Timestamp,
    },
    /// Another process claims services in the same file.
    #[error("another process works on {}; an SQLite file is for one", file.display())]
    FileInUse {
        /// The database's file.
        file: PathBuf,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(expiry_1: u64, expiry_2: u64, longest_submission: u64) -> Result<(), ClaimError> {
        let [expiry_1, expiry_2, longest_submission] =
            [expiry_1, expiry_2, longest_submission].map(Duration::from_secs);
        ClaimOptions { expiry_1, expiry_2, longest_submission, ..ClaimOptions::default() }.check()
    }

    #[test]
    fn the_default_is_good() {
        assert_eq!(ClaimOptions::default().check(), Ok(()));
    }

    #[test]
    fn a_whole_submission_fits_between_the_expiries() {
        assert_eq!(check(30, 90, 60), Ok(()));
        let error = check(30, 89, 60).unwrap_err();
        assert!(matches!(error, ClaimError::Overtaking { .. }));
        assert_eq!(
            error.to_string(),
            "a submission may take 60s, and claims expire after 30s and 89s; between the two, or \
             before one that is both, a whole submission must fit"
        );
    }

    #[test]
    fn equal_expiries_outlast_a_submission() {
        assert_eq!(check(61, 61, 60), Ok(()));
        assert!(matches!(check(60, 60, 60), Err(ClaimError::Overtaking { .. })));
    }

    #[test]
    fn the_first_expiry_is_not_after_the_second() {
        assert!(matches!(check(31, 30, 0), Err(ClaimError::Reversed { .. })));
    }
}
