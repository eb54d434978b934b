use std::{path::PathBuf, time::Duration};

use grid_batch_core::Timestamp;
use grid_batch_core::claims::InstanceId;
use thiserror::Error;

/// Why an instance cannot claim services.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ClaimError {
    /// The full expiry comes before the idle expiry.
    #[error(
        "the full expiry of claims, {full_expiry:?}, is shorter than the idle expiry, \
         {idle_expiry:?}; set it to at least that"
    )]
    Reversed {
        /// The idle expiry.
        idle_expiry: Duration,
        /// The full expiry.
        full_expiry: Duration,
    },
    /// Another instance could take over a service during a submission.
    #[error(
        "a submission may take {longest_submission:?}, but claims expire after {idle_expiry:?} \
         (idle) and {full_expiry:?} (full); a whole submission must fit between the two expiries, \
         or into the expiry if both are equal"
    )]
    SubmissionTooLong {
        /// The idle expiry.
        idle_expiry: Duration,
        /// The full expiry.
        full_expiry: Duration,
        /// The longest submission.
        longest_submission: Duration,
    },
    /// Another instance has the name, and its lease has not expired.
    #[error(
        "the running instance {holder} has the name {name:?}, at least until {} (microseconds \
         since 1970, by the database's clock); stop that instance, or wait until its lease expires",
        until.as_micros()
    )]
    NameInUse {
        /// The name.
        name: String,
        /// The instance that has it.
        holder: InstanceId,
        /// The idle expiry of that instance.
        until: Timestamp,
    },
    /// Running instances would be disturbed by the operation.
    #[error(
        "instances are running: {}; stop them, or wait until the leases of those that crashed expire",
        list(instances)
    )]
    InstancesRunning {
        /// The instances before their idle expiry.
        instances: Vec<InstanceId>,
    },
    /// Another process claims services in the same SQLite file.
    #[error(
        "another process uses {}; only one process can claim services in an SQLite file: stop the \
         other one",
        file.display()
    )]
    FileInUse {
        /// The database's file.
        file: PathBuf,
    },
}

fn list(instances: &[InstanceId]) -> String {
    instances.iter().map(InstanceId::as_str).collect::<Vec<_>>().join(", ")
}
