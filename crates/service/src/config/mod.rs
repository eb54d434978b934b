//! The configuration: defaults, then a file, the environment and the command line. Later sources
//! override earlier ones.

mod access;
mod check;
mod claims;
mod error;
mod evm;
mod file;
mod guidance;
mod intake;
mod key_source;
mod layers;
mod ledger;
mod ledger_table;
mod ledger_type;
mod listen;
mod log_filter;
mod log_format;
mod poll;
mod print;
mod range;
mod reference;
mod retention;
mod scheduling;
mod secret;
mod setting;
mod setting_file;
#[cfg(test)]
mod tests;
mod value;
mod warnings;
mod webhooks;

use std::{num::NonZero, path::Path, sync::Arc, time::Duration};

use grid_batch_core::{Clock, SchedulingRules};
use grid_batch_queuer::QueueOptions;
use grid_batch_store::{DatabaseClock, DatabaseUrl, DelayOptions, StoreOptions};
use grid_batch_submitter::SubmitterOptions;
use grid_batch_webhooks::DeliveryOptions;

pub use access::AccessConfig;
pub use claims::ClaimsConfig;
pub use error::{ConfigError, Origin};
pub use evm::EvmConfig;
pub use guidance::Guidance;
pub use intake::IntakeConfig;
pub use key_source::{KeySource, PasswordSource};
pub use ledger::LedgerConfig;
pub(crate) use ledger_type::KIND_RULE;
pub use ledger_type::{FactSettings, LedgerType, OpenLedgerFn};
pub use listen::{ListenAddress, ListenConfig, TlsFiles};
pub use log_filter::LogFilter;
pub use log_format::LogFormat;
pub use poll::PollConfig;
pub use reference::settings_reference;
pub use retention::RetentionConfig;
pub use setting::{Form, SETTINGS, Setting};

pub use warnings::ReadableSecret;

use layers::{GivenValue, Layers};
pub(crate) use ledger_type::Adapter;
use ledger_type::ConfiguredType;
use serde::de::DeserializeOwned;
use setting_file::with_files;
use value::DurationOrZero;

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
    /// How many lines with the same message are logged in ten seconds; 0 for all.
    pub log_repeats: u32,
    /// How often the log counts batches.
    pub log_counts: Duration,
    /// The ledger.
    pub ledger: LedgerConfig,
    /// The pools and gas admins, if the ledger is an EVM chain.
    pub evm: EvmConfig,
    /// How the database is used.
    pub store: StoreOptions,
    /// How long a server that starts waits for its database.
    pub start_timeout: Duration,
    /// How services are divided among instances.
    pub claims: ClaimsConfig,
    /// The longest request body, in bytes.
    pub body_limit: usize,
    /// The most open HTTP connections, if the limit of file descriptors allows so many.
    pub connections: usize,
    /// The most HTTP requests in progress of one address.
    pub requests_of_address: usize,
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
    /// How many services have a label of their own in `/metrics`.
    pub metrics_services: usize,
    layers: Layers,
}

impl Config {
    /// The file that is read if no other is named and this one exists.
    pub const FILE: &str = "grid-batch.toml";

    /// The environment variable that names the file.
    pub const FILE_VARIABLE: &str = "GRID_BATCH_CONFIG";

    /// Reads the file, the environment and the flags, which are pairs of a setting and its value.
    /// Later sources override earlier ones.
    ///
    /// ```
    /// use std::path::Path;
    /// use grid_batch_service::{Config, Setting};
    ///
    /// let variables = [("GRID_BATCH_LISTEN".to_owned(), "127.0.0.1:1".to_owned())];
    /// let flag = (Setting::named("queue.delay").unwrap(), "3s".to_owned());
    /// let config = Config::load(None, variables.into_iter(), vec![flag])?;
    /// assert_eq!(config.listen.addresses[0].to_string(), "127.0.0.1:1");
    /// assert_eq!(config.delays.first.as_secs(), 3);
    /// # Ok::<(), grid_batch_service::ConfigError>(())
    /// ```
    pub fn load(
        file: Option<&Path>,
        variables: impl Iterator<Item = (String, String)>,
        flags: Vec<(&'static Setting, String)>,
    ) -> Result<Self, ConfigError> {
        Self::load_with_ledgers(&[], file, variables, flags)
    }

    /// The same, where `ledger.kind` can also name one of these types of ledgers. The settings of such a ledger are the
    /// section `[ledger.NAME]` of the file, which [`LedgerContext::settings`](crate::LedgerContext::settings) reads.
    pub fn load_with_ledgers(
        ledgers: &[LedgerType],
        file: Option<&Path>,
        variables: impl Iterator<Item = (String, String)>,
        flags: Vec<(&'static Setting, String)>,
    ) -> Result<Self, ConfigError> {
        let content = file::read(file.unwrap_or(Path::new(Self::FILE)), file.is_some())?;
        let layers = Layers::defaults()
            .with_ledgers(ledgers)
            .with_tables(content.tables)
            .override_with(with_files(content.values)?)
            .override_with(with_files(layers::read_environment(variables)?)?)
            .override_with(with_files(flags.into_iter().map(given_by_flag).collect())?);
        Self::from_layers(layers)
    }

    /// The configuration of these flags alone, without a file or the environment.
    pub fn from_flags(flags: Vec<(&'static Setting, String)>) -> Result<Self, ConfigError> {
        let flags = with_files(flags.into_iter().map(given_by_flag).collect())?;
        Self::from_layers(Layers::defaults().override_with(flags))
    }

    fn from_layers(layers: Layers) -> Result<Self, ConfigError> {
        layers.check_placeholders()?;
        range::check(&layers)?;
        let ledger_type = ConfiguredType::from_layers(&layers)?;
        let store = store_options(&layers, ledger_type.as_ref())?;
        let listen = ListenConfig::from_layers(&layers)?;
        let config = Self {
            database: layers.get("database")?,
            access: AccessConfig::from_layers(&layers, &listen, ledger_type.as_ref())?,
            listen,
            log: layers.get::<LogFilter>("log")?.as_str().to_owned(),
            log_format: layers.get("log_format")?,
            log_repeats: layers.get("log_repeats")?,
            log_counts: layers.get("log_counts")?,
            ledger: LedgerConfig::from_layers(&layers, ledger_type.as_ref())?,
            evm: EvmConfig::from_layers(&layers)?,
            queue: queue_options(&layers, &store.scheduling)?,
            store,
            start_timeout: layers.get::<DurationOrZero>("store.start_timeout")?.0,
            claims: ClaimsConfig::from_layers(&layers)?,
            body_limit: layers.get_size("intake.body_limit")?,
            connections: layers.get_size("intake.connections")?,
            requests_of_address: layers.get_size("intake.requests_of_address")?,
            intake: IntakeConfig::from_layers(&layers)?,
            delays: delay_options(&layers)?,
            in_flight: layers.get_size("submit.in_flight")?,
            node_concurrency: layers.get_size("submit.node_concurrency")?,
            submit: submitter_options(&layers)?,
            poll: PollConfig::from_layers(&layers)?,
            retention: RetentionConfig::from_layers(&layers)?,
            webhooks: webhooks::delivery_options(&layers)?,
            metrics_services: layers.get_size("metrics.services")?,
            layers,
        };
        config.check()?;
        Ok(config)
    }

    /// How the adapter of the configured ledger is made; `None` if its kind is not set.
    pub(crate) fn adapter(&self) -> Option<Adapter> {
        let known = self.layers.ledgers().iter();
        let mut named = known.filter(|ledger| Some(ledger.name) == self.ledger.kind);
        named.next().map(|ledger| ledger.adapter)
    }

    /// The settings of the configured ledger, if it is registered by a program.
    pub(crate) fn ledger_settings<T: DeserializeOwned>(&self) -> Result<T, ConfigError> {
        self.layers.tables().read(self.ledger.kind.unwrap_or_default())
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

fn given_by_flag((setting, text): (&'static Setting, String)) -> GivenValue {
    GivenValue { setting, origin: Origin::Flag(setting.flag()), text }
}

fn store_options(
    layers: &Layers,
    ledger_type: Option<&ConfiguredType>,
) -> Result<StoreOptions, ConfigError> {
    Ok(StoreOptions {
        connections: layers.get::<NonZero<u32>>("store.connections")?.get(),
        lock_timeout: layers.get("store.lock_timeout")?,
        // Row locks of a frozen instance must not outlive its lease.
        idle_transaction_timeout: layers.get::<Duration>("claims.idle_expiry")? / 2,
        intake_limits: intake::intake_limits(layers)?,
        scheduling: Arc::new(scheduling::scheduling_rules(layers, ledger_type)?),
        writes_events: layers.get("events.enabled")?,
        ..StoreOptions::default()
    })
}

fn queue_options(
    layers: &Layers,
    scheduling: &SchedulingRules,
) -> Result<QueueOptions, ConfigError> {
    let total_limit: Duration = layers.get("submit.total_limit")?;
    Ok(QueueOptions {
        round_size: layers.get_size("queue.round_size")?,
        most_of_service: scheduling::most_lanes(scheduling),
        memory_limit: layers.get_size("submit.memory_limit")?,
        poll_interval: layers.get("queue.poll_interval")?,
        give_back_after: total_limit.saturating_sub(layers.get("submit.sending_limit")?),
        ..QueueOptions::default()
    })
}

fn delay_options(layers: &Layers) -> Result<DelayOptions, ConfigError> {
    Ok(DelayOptions {
        first: layers.get("queue.delay")?,
        longest: layers.get("queue.longest_delay")?,
        retry_after_limit: layers.get("submit.retry_after_limit")?,
        refusals_before_hold: layers.get::<NonZero<u32>>("submit.refusals_before_hold")?.get(),
        hold_after: layers.get("poll.hold_after")?,
        ..DelayOptions::default()
    })
}

fn submitter_options(layers: &Layers) -> Result<SubmitterOptions, ConfigError> {
    Ok(SubmitterOptions {
        concurrency: layers.get::<NonZero<u32>>("submit.concurrency")?.get(),
        sending_limit: layers.get("submit.sending_limit")?,
        total_limit: layers.get("submit.total_limit")?,
        drain_limit: layers.get("submit.drain_limit")?,
        not_sent_attempts: layers.get::<NonZero<u16>>("submit.not_sent_attempts")?.get(),
        warn_after: layers.get("poll.warn_after")?,
        ..SubmitterOptions::default()
    })
}

/// A setting whose empty value means that it is not set.
fn optional<T: From<String>>(text: String) -> Option<T> {
    (!text.is_empty()).then(|| text.into())
}
