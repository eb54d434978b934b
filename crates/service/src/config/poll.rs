use std::{num::NonZero, time::Duration};

use grid_batch_settings::{ConfigError, OfServices, SettingValue, SettingValues};

use super::times::Times;

/// Status requests that may be in flight: enough for nodes that are far away.
const CONNECTIONS: usize = 16;

/// How the ledger is polled.
#[derive(Debug, Clone)]
pub struct PollConfig {
    /// The longest interval from the acceptance of a batch to its first poll, and the interval between
    /// two reads of batches that the server was not told of.
    pub interval: Duration,
    /// The longest interval between two polls of a batch that makes no progress.
    pub longest_interval: Duration,
    /// The shortest interval between two polls of a service that events trigger.
    pub trigger_gap: Duration,
    /// How many status requests may be sent in a second.
    pub requests_per_second: u32,
    /// How many requests to the ledger may be in flight.
    pub connections: usize,
    /// How long an accepted batch may have no final status before evidence is searched for.
    pub quiet_after: Duration,
    /// How long a batch has been in its state before evidence of absence is accepted.
    pub accept_absence_after: Duration,
    /// How long evidence is searched for before the batch is held.
    pub hold_after: Duration,
    /// How long a batch may have no final status before it is held.
    pub give_up_after: Duration,
    /// How long nothing of a service may end while a batch is under way before a warning is logged.
    pub warn_after: Duration,
    /// How many attempts a batch has before it is held.
    pub max_attempts: u32,
    /// Services whose batches are resubmitted instead of held.
    pub resubmit_inconclusive: OfServices<bool>,
}

impl PollConfig {
    pub(super) fn from_settings(
        settings: &SettingValues,
        times: &Times,
    ) -> Result<Self, ConfigError> {
        Ok(Self {
            interval: times.interval,
            longest_interval: times.longest_interval,
            trigger_gap: settings.get("testing.trigger_gap")?,
            requests_per_second: settings.get::<NonZero<u32>>("poll.requests_per_second")?.get(),
            connections: CONNECTIONS,
            quiet_after: times.quiet_after,
            accept_absence_after: times.accept_absence_after,
            hold_after: times.hold_after,
            give_up_after: settings.get("poll.give_up_after")?,
            warn_after: times.warn_after,
            max_attempts: settings.get::<NonZero<u32>>("testing.max_attempts")?.get(),
            resubmit_inconclusive: resubmit_inconclusive(settings)?,
        })
    }
}

fn resubmit_inconclusive(settings: &SettingValues) -> Result<OfServices<bool>, ConfigError> {
    OfServices::from_settings(settings, "services.*.resubmit_inconclusive", bool::parse)
}
