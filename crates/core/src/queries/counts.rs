use std::{collections::BTreeMap, fmt, time::Duration};

use crate::batches::BatchState;
use crate::claims::InstanceId;
use crate::queries::QueueDepth;
use crate::{BatchResult, ServiceId, Timestamp};

/// How many services have open batches, and how many of them are in trouble.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ServiceCounts {
    /// Services with open batches.
    pub open: u64,
    /// Services with a batch that is held for an operator.
    pub held: u64,
    /// Services with a batch that is not held and has an error, because its last attempt or a later step failed.
    pub failing: u64,
    /// Services with a batch in a lane that was open when the database went back to an earlier state.
    pub restored: u64,
    /// Services in which an invalid batch stops others.
    pub halted: u64,
    /// For how long the first of them has been halted.
    pub halted_for: Duration,
    /// Services that an operator has paused, one by one.
    pub paused: u64,
    /// Services that are paused because their nodes have different states.
    pub states_differ: u64,
    /// Whether an operator has paused all services.
    pub all_paused: bool,
}

/// How many batches are open, and which queues are full.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct QueueCounts {
    /// Open batches of all services, whatever they wait for.
    pub open: u64,
    /// Open batches that depend on a missing transaction.
    pub incomplete: u64,
    /// Services that have reached their limit of open batches.
    pub full: u64,
    /// The one of them with the most open batches.
    pub fullest: Option<FullQueue>,
    /// The services that this process has found but whose names it cannot read. Their batches wait.
    pub unreadable: Vec<String>,
}

/// A service that has reached its limit of open batches, and what fills its queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FullQueue {
    /// The service.
    pub service_id: ServiceId,
    /// The number of its open batches.
    pub open: u64,
    /// The limit of open batches.
    pub limit: u64,
    /// The open batches that depend on a missing transaction.
    pub incomplete: u64,
    /// How many signers have batches that miss a transaction.
    pub signers: u64,
    /// The number of missing transactions of the signer with the most.
    pub most_of_signer: u64,
    /// The open batches that are held.
    pub held: u64,
    /// The open batches that are delayed after a failed attempt or by a gate.
    pub delayed: u64,
    /// Whether an operator has paused the service, or all.
    pub paused: bool,
    /// Whether an invalid batch stops others.
    pub halted: bool,
}

/// The batches in lanes by state, what open batches wait for, and how old the oldest one is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OpenStates {
    /// The states of the batches in lanes.
    pub states: BTreeMap<BatchState, OpenState>,
    /// The number of waiting open batches by the name of the wait reason. In services with one lane, batches that wait
    /// for their turn are not counted.
    pub waits: BTreeMap<&'static str, u64>,
    /// The batches that are held for an operator, also behind others.
    pub held: u64,
    /// How long ago the oldest open batch was accepted; `None` if none is open.
    pub oldest: Option<Duration>,
}

/// The batches in lanes that are in one state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OpenState {
    /// How many batches are in it.
    pub batches: u64,
    /// How long the first of them has been in this state.
    pub longest: Duration,
}

/// What all instances did in a period, and what was open then.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sample {
    /// When the period began.
    pub at: Timestamp,
    /// How many attempts to submit a batch began.
    pub attempts: u64,
    /// How many batches ended as committed.
    pub committed: u64,
    /// How many batches ended as invalid.
    pub invalid: u64,
    /// The largest number of open batches.
    pub open: u64,
    /// The largest age of the oldest open batch.
    pub oldest: Duration,
}

impl Sample {
    /// The shortest period.
    pub const PERIOD: Duration = Duration::from_secs(10);
    /// How long samples are kept.
    pub const KEPT: Duration = Duration::from_secs(24 * 60 * 60);
}

/// The connections of one pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolConnections {
    /// What the pool is for: `write`, `read`, or `all`.
    pub pool: &'static str,
    /// How many are open.
    pub open: u32,
    /// How many of them are not in use.
    pub idle: u32,
    /// How many may be open.
    pub most: u32,
}

/// The space of the file system that has the database, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiskSpace {
    /// What is left for this process.
    pub free: u64,
    /// The size of the file system.
    pub total: u64,
}

impl DiskSpace {
    /// What is left, in whole mebibytes.
    pub fn free_mebibytes(self) -> u64 {
        self.free >> 20
    }

    /// Less than a tenth is left, and less than a gibibyte: soon, nothing can be stored.
    pub fn is_low(self) -> bool {
        self.free < (self.total / 10).min(1 << 30)
    }

    /// Not even a mebibyte is left.
    pub fn is_used_up(self) -> bool {
        self.free_mebibytes() == 0
    }
}

impl fmt::Display for DiskSpace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} MiB left of {} MiB", self.free_mebibytes(), self.total >> 20)
    }
}

/// Counts what is stored, for the health and the metrics of a server, and keeps samples of the last day.
#[cfg_attr(feature = "mocks", mockall::automock)]
pub trait BatchCounts: Send + Sync {
    /// How many services have open batches, and how many of them are in trouble.
    fn service_counts(&self) -> BatchResult<ServiceCounts>;

    /// How many batches are open, and which queues are full.
    fn queue_counts(&self) -> BatchResult<QueueCounts>;

    /// The batches in lanes by state, and what open batches wait for.
    fn open_states(&self) -> BatchResult<OpenStates>;

    /// The services with open batches, and how many each has.
    fn depths(&self) -> BatchResult<Vec<QueueDepth>>;

    /// How many services this instance claims.
    fn count_claims(&self, instance: &InstanceId) -> BatchResult<u64>;

    /// Adds to the sample of the present period, and removes those that are too old. The time of the sample is not used.
    fn add_sample(&self, sample: &Sample) -> BatchResult<()>;

    /// The samples since a time in whole periods of this length, the oldest first, without those in which no instance ran.
    fn samples(&self, since: Timestamp, period: Duration) -> BatchResult<Vec<Sample>>;

    /// The connections to the database, by pool. Like `events_written`, it reads only from memory.
    fn connections(&self) -> Vec<PoolConnections>;

    /// How many events were written since the start, including those of failed transactions.
    fn events_written(&self) -> u64;
}
