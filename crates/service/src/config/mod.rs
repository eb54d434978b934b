//! The configuration: defaults, then a file, the environment and the command line. Later sources
//! override earlier ones.

mod access;
mod check;
mod claims;
mod intake;
mod ledger;
mod ledger_type;
mod listen;
mod poll;
mod print;
mod retention;
mod scheduling;
mod table;
#[cfg(test)]
mod tests;
mod times;
mod webhooks;

use std::{num::NonZero, path::Path, sync::Arc, time::Duration};

use grid_batch_core::{Clock, SchedulingRules};
use grid_batch_queuer::QueueOptions;
use grid_batch_settings::{
    ConfigError, DurationOrZero, LogFilter, LogFormat, OldName, ReadableSecret, SettingTable,
    SettingValues, SourceValues,
};
use grid_batch_store::{DatabaseClock, DatabaseUrl, DelayOptions, StoreOptions};
use grid_batch_submitter::SubmitterOptions;
use grid_batch_webhooks::DeliveryOptions;
use log::warn;

pub use access::AccessConfig;
pub use claims::ClaimsConfig;
pub use intake::IntakeConfig;
pub use ledger::LedgerConfig;
pub(crate) use ledger_type::{Adapter, KIND_RULE};
pub use ledger_type::{FactsFn, LedgerType, OpenLedgerFn};
pub use listen::{ListenConfig, TlsFiles};
pub use poll::PollConfig;
pub use retention::RetentionConfig;
pub use table::SETTINGS;

use ledger_type::ConfiguredType;
use times::Times;

/// All settings, checked.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where batches are stored.
    pub database: DatabaseUrl,
    /// Where the HTTP interface listens.
    pub listen: ListenConfig,
    /// Who may use it.
    pub access: AccessConfig,
    /// The log filter, in the syntax of `env_logger`.
    pub log: String,
    /// The format of the log.
    pub log_format: LogFormat,
    /// How often the log counts batches.
    pub log_counts: Duration,
    /// The ledger.
    pub ledger: LedgerConfig,
    /// How the database is used.
    pub store: StoreOptions,
    /// How long a server that starts waits for its database.
    pub start_timeout: Duration,
    /// How services are divided among instances.
    pub claims: ClaimsConfig,
    /// The longest request body, in bytes.
    pub body_limit: usize,
    /// Which requests are answered, and which batches are accepted.
    pub intake: IntakeConfig,
    /// How batches are taken from the store.
    pub queue: QueueOptions,
    /// How long a batch is delayed after an attempt that certainly failed, and when it is held.
    pub delays: DelayOptions,
    /// The greatest number of batches that may be under way for the ledger.
    pub in_flight: usize,
    /// The greatest number of batches under submission at one node.
    pub node_concurrency: usize,
    /// How batches are submitted.
    pub submit: SubmitterOptions,
    /// How the ledger is polled.
    pub poll: PollConfig,
    /// When ended batches are removed.
    pub retention: RetentionConfig,
    /// How events are delivered to webhooks.
    pub webhooks: DeliveryOptions,
    settings: SettingValues,
    adapter: Option<Adapter>,
}

impl Config {
    /// The file that is read if no other is named and this one exists.
    pub const FILE: &str = "grid-batch.toml";

    /// The environment variable that names the file.
    pub const FILE_VARIABLE: &str = "GRID_BATCH_CONFIG";

    /// Reads the file, the environment and the flags, which are pairs of a setting's name and its value.
    /// Later sources override earlier ones.
    ///
    /// ```
    /// use std::path::Path;
    /// use grid_batch_service::Config;
    ///
    /// let variables = [("GRID_BATCH_LISTEN".to_owned(), "127.0.0.1:1".to_owned())];
    /// let flag = ("poll.interval".to_owned(), "3s".to_owned());
    /// let config = Config::load(None, variables.into_iter(), vec![flag])?;
    /// assert_eq!(config.listen.addresses[0].to_string(), "127.0.0.1:1");
    /// assert_eq!(config.poll.interval.as_secs(), 3);
    /// # Ok::<(), grid_batch_service::ConfigError>(())
    /// ```
    pub fn load(
        file: Option<&Path>,
        variables: impl Iterator<Item = (String, String)>,
        flags: Vec<(String, String)>,
    ) -> Result<Self, ConfigError> {
        Self::load_with_ledgers(&[], file, variables, flags)
    }

    /// The same, where `ledger.kind` can also name one of these types of ledgers, and their settings can be given.
    pub fn load_with_ledgers(
        ledgers: &[LedgerType],
        file: Option<&Path>,
        variables: impl Iterator<Item = (String, String)>,
        flags: Vec<(String, String)>,
    ) -> Result<Self, ConfigError> {
        let table = table::with_registered(ledgers)?;
        let path = file.unwrap_or(Path::new(Self::FILE));
        let of_file = SourceValues::from_file(&table, path, file.is_some())?;
        let [of_aliases, of_environment] = SourceValues::from_environment(&table, variables)?;
        let of_flags = SourceValues::from_flags(&table, flags)?;
        Self::from_sources(table, ledgers, [of_file, of_aliases, of_environment, of_flags])
    }

    /// The configuration of these flags alone, without a file or the environment.
    pub fn from_flags(flags: Vec<(String, String)>) -> Result<Self, ConfigError> {
        let of_flags = SourceValues::from_flags(&SETTINGS, flags)?;
        Self::from_sources(SETTINGS.clone(), &[], [of_flags])
    }

    /// The defaults, overridden by the values of these sources, the last one first.
    fn from_sources(
        table: SettingTable,
        ledgers: &[LedgerType],
        sources: impl IntoIterator<Item = SourceValues>,
    ) -> Result<Self, ConfigError> {
        let defaults = SettingValues::defaults(table);
        Self::from_settings(sources.into_iter().fold(defaults, SettingValues::override_by), ledgers)
    }

    fn from_settings(settings: SettingValues, ledgers: &[LedgerType]) -> Result<Self, ConfigError> {
        settings.check()?;
        let ledger_type = ConfiguredType::from_settings(&settings, ledgers)?;
        let times = Times::from_settings(&settings)?;
        let store = store_options(&settings, ledger_type.as_ref())?;
        let listen = ListenConfig::from_settings(&settings)?;
        let config = Self {
            database: settings.get_parsed("database")?,
            access: AccessConfig::from_settings(&settings, &listen, ledger_type.as_ref())?,
            listen,
            log: settings.get::<LogFilter>("log")?.as_str().to_owned(),
            log_format: settings.get("log_format")?,
            log_counts: settings.get("testing.log_counts")?,
            ledger: LedgerConfig::from_settings(&settings, ledger_type.as_ref(), &times)?,
            queue: queue_options(&settings, &store.scheduling, &times)?,
            store,
            start_timeout: settings.get::<DurationOrZero>("store.start_timeout")?.0,
            claims: ClaimsConfig::from_settings(&settings, &times)?,
            body_limit: settings.get_size("intake.body_limit")?,
            intake: IntakeConfig::from_settings(&settings)?,
            delays: delay_options(&settings)?,
            in_flight: settings.get_size("submit.in_flight")?,
            node_concurrency: settings.get_size("submit.concurrency")?.div_ceil(2),
            submit: submitter_options(&settings, &times)?,
            poll: PollConfig::from_settings(&settings, &times)?,
            retention: RetentionConfig::from_settings(&settings)?,
            webhooks: webhooks::delivery_options(&settings)?,
            adapter: ledger_type.map(|it| it.ledger.adapter),
            settings,
        };
        config.check()?;
        Ok(config)
    }

    /// How the adapter of the configured ledger is made; `None` if its kind is not set.
    pub(crate) fn adapter(&self) -> Option<Adapter> {
        self.adapter
    }

    /// The value of each setting.
    pub(crate) fn settings(&self) -> &SettingValues {
        &self.settings
    }

    /// The names of earlier releases under which values were given.
    pub fn old_names(&self) -> &[OldName] {
        self.settings.old_names()
    }

    /// Each file with a secret, and a database file, that other users can read, and each secret that was
    /// given as a flag.
    pub fn readable_secrets(&self) -> Vec<ReadableSecret> {
        self.settings.readable_secrets(self.database.file())
    }

    /// Warns of the [`readable_secrets`](Self::readable_secrets) and the [`old_names`](Self::old_names).
    pub fn warn(&self) {
        self.old_names().iter().for_each(|old_name| warn!("{old_name}"));
        self.readable_secrets().iter().for_each(ReadableSecret::warn);
    }

    /// The same configuration for a machine with this clock.
    pub(crate) fn with_clock(&self, clock: &Arc<dyn Clock>) -> Self {
        let mut config = self.clone();
        config.store.clock = DatabaseClock::new(Arc::clone(clock));
        // The machine's time of day shows at once that it was suspended; the database's is measured rarely.
        config.queue.clock = Arc::clone(clock);
        config
    }

    /// The same configuration, in which all parts share what they know of the ledger's nodes.
    pub(crate) fn with_nodes(&self, clock: &Arc<dyn Clock>) -> Self {
        let mut config = self.clone();
        let nodes = config.ledger.node_pool(clock);
        config.ledger.http.nodes = nodes.clone();
        config.ledger.socket.nodes = nodes;
        config
    }

    /// The clock of every part that stores or compares times: its time of day is the database's.
    pub(crate) fn clock(&self) -> Arc<dyn Clock> {
        Arc::new(self.store.clock.clone())
    }

    /// The time after which a batch that was taken is certainly not being submitted any more: twice the
    /// limit of a submission.
    pub fn longest_submission(&self) -> Duration {
        self.submit.total_limit * 2
    }
}

fn store_options(
    settings: &SettingValues,
    ledger_type: Option<&ConfiguredType>,
) -> Result<StoreOptions, ConfigError> {
    Ok(StoreOptions {
        connections: settings.get::<NonZero<u32>>("store.connections")?.get(),
        lock_timeout: settings.get("testing.lock_timeout")?,
        // Row locks of a frozen instance must not outlive its lease.
        idle_transaction_timeout: settings.get::<Duration>("claims.idle_expiry")? / 2,
        intake_limits: intake::intake_limits(settings)?,
        scheduling: Arc::new(scheduling::scheduling_rules(settings, ledger_type)?),
        writes_events: settings.get("events.enabled")?,
        ..StoreOptions::default()
    })
}

fn queue_options(
    settings: &SettingValues,
    scheduling: &SchedulingRules,
    times: &Times,
) -> Result<QueueOptions, ConfigError> {
    Ok(QueueOptions {
        most_of_service: scheduling::most_lanes(scheduling),
        memory_limit: settings.get_size("testing.memory_limit")?,
        poll_interval: settings.get("testing.queue_poll_interval")?,
        give_back_after: times.total_limit.saturating_sub(times.sending_limit),
        ..QueueOptions::default()
    })
}

fn delay_options(settings: &SettingValues) -> Result<DelayOptions, ConfigError> {
    Ok(DelayOptions {
        first: settings.get("testing.first_delay")?,
        longest: settings.get("testing.longest_delay")?,
        retry_after_limit: settings.get("testing.retry_after_limit")?,
        refusals_before_hold: settings.get::<NonZero<u32>>("testing.refusals_before_hold")?.get(),
        hold_after: settings.get("poll.hold_after")?,
        ..DelayOptions::default()
    })
}

fn submitter_options(
    settings: &SettingValues,
    times: &Times,
) -> Result<SubmitterOptions, ConfigError> {
    Ok(SubmitterOptions {
        concurrency: settings.get::<NonZero<u32>>("submit.concurrency")?.get(),
        sending_limit: times.sending_limit,
        total_limit: times.total_limit,
        drain_limit: times.drain_limit,
        warn_after: times.warn_after,
        ..SubmitterOptions::default()
    })
}

/// The text of `docs/settings.md`.
pub fn settings_reference() -> String {
    grid_batch_settings::settings_reference(&SETTINGS)
}

/// A setting whose empty value means that it is not set.
fn optional<T: From<String>>(text: String) -> Option<T> {
    (!text.is_empty()).then(|| text.into())
}
