//! The configuration: defaults, then a file, the environment and the command line. Later sources
//! override earlier ones.

mod access;
mod check;
mod equal;
mod general;
mod http;
mod instance;
mod intake;
mod ledger;
mod ledger_type;
mod old;
mod options;
mod print;
mod processing;
mod requests;
mod scheduling;
mod services;
mod table;
mod testing;
#[cfg(test)]
mod tests;
mod times;

use std::{fmt, path::Path, sync::Arc, time::Duration};

use grid_batch_core::{Clock, SystemClock};
use grid_batch_nodes::NodePool;
use grid_batch_settings::{
    ConfigError, OldName, ReadableSecret, SettingTable, SettingValues, SourceValues,
};
use grid_batch_store::DatabaseClock;
#[cfg(feature = "evm")]
use grid_batch_withdrawals::PaymentLimits;
use log::warn;

pub use access::AccessConfig;
pub use general::GeneralConfig;
pub use http::HttpConfig;
pub use instance::{ClaimsConfig, StoreConfig};
pub use intake::IntakeConfig;
pub use ledger::LedgerConfig;
pub(crate) use ledger_type::{Adapter, KIND_RULE};
pub use ledger_type::{FactsFn, LedgerType, OpenLedgerFn};
pub use processing::{EventsConfig, PollConfig, RetentionConfig, SubmitConfig};
pub use requests::RequestsConfig;
pub use services::ServicesConfig;
pub use table::SETTINGS;
pub use testing::TestingConfig;

use ledger_type::ConfiguredType;

/// The longest value of many settings: with a longer one, given by mistake, the server would stand still for as long.
const HOUR: Duration = Duration::from_secs(60 * 60);

/// All settings, checked: `poll.interval` is the field `interval` of `poll`. What follows from several settings is a
/// method.
#[derive(Clone)]
pub struct Config {
    /// The settings outside of sections.
    pub general: GeneralConfig,
    /// The ledger, and how requests to it are made.
    pub ledger: LedgerConfig,
    /// What the settings say of services.
    pub services: ServicesConfig,
    /// How the database is used.
    pub store: StoreConfig,
    /// How services are divided among instances.
    pub claims: ClaimsConfig,
    /// How the HTTP interface listens, and which requests it answers.
    pub http: HttpConfig,
    /// Who may use the HTTP interface.
    pub access: AccessConfig,
    /// Which batches are accepted.
    pub intake: IntakeConfig,
    /// How batches are submitted.
    pub submit: SubmitConfig,
    /// How the ledger is polled.
    pub poll: PollConfig,
    /// When ended batches are removed.
    pub retention: RetentionConfig,
    /// Which events are written.
    pub events: EventsConfig,
    /// The requests that the server sends.
    pub requests: RequestsConfig,
    /// What only tests set.
    pub testing: TestingConfig,
    /// The value of each setting, and where it was given.
    pub(crate) settings: SettingValues,
    ledger_type: Option<ConfiguredType>,
    clock: DatabaseClock,
    /// The clock of this machine, whose time of day shows at once that the machine was suspended. The database's is
    /// measured rarely.
    pub(crate) machine_clock: Arc<dyn Clock>,
    /// What all parts know of the ledger's nodes.
    pub(crate) nodes: NodePool,
    /// The limits of what is scheduled from pools.
    #[cfg(feature = "evm")]
    pub(crate) payment_limits: Arc<PaymentLimits>,
}

/// Where each value was given. The values may be secrets.
impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config").field("settings", &self.settings).finish_non_exhaustive()
    }
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
    /// assert_eq!(config.general.listen[0].to_string(), "127.0.0.1:1");
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
        let machine_clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let config = Self {
            ledger_type: ConfiguredType::from_settings(&settings, ledgers)?,
            general: GeneralConfig::read(&settings)?,
            ledger: LedgerConfig::read(&settings)?,
            services: ServicesConfig::read(&settings)?,
            store: StoreConfig::read(&settings)?,
            claims: ClaimsConfig::read(&settings)?,
            http: HttpConfig::read(&settings)?,
            access: AccessConfig::read(&settings)?,
            intake: IntakeConfig::read(&settings)?,
            submit: SubmitConfig::read(&settings)?,
            poll: PollConfig::read(&settings)?,
            retention: RetentionConfig::read(&settings)?,
            events: EventsConfig::read(&settings)?,
            requests: RequestsConfig::read(&settings)?,
            testing: TestingConfig::read(&settings)?,
            settings,
            clock: DatabaseClock::new(Arc::clone(&machine_clock)),
            machine_clock,
            nodes: NodePool::default(),
            #[cfg(feature = "evm")]
            payment_limits: Arc::default(),
        };
        config.check()?;
        Ok(config)
    }

    /// How the adapter of the configured ledger is made; `None` if its kind is not set.
    pub(crate) fn adapter(&self) -> Option<Adapter> {
        self.ledger_type.map(|it| it.ledger.adapter)
    }

    /// The names of earlier releases under which values were given.
    pub fn old_names(&self) -> &[OldName] {
        self.settings.old_names()
    }

    /// Each file with a secret, and a database file, that other users can read, and each secret that was
    /// given as a flag.
    pub fn readable_secrets(&self) -> Vec<ReadableSecret> {
        self.settings.readable_secrets(self.general.database.file())
    }

    /// Warns of the [`readable_secrets`](Self::readable_secrets) and the [`old_names`](Self::old_names).
    pub fn warn(&self) {
        self.old_names().iter().for_each(|old_name| warn!("{old_name}"));
        self.readable_secrets().iter().for_each(ReadableSecret::warn);
    }

    /// The same configuration for a machine with this clock.
    pub(crate) fn with_clock(&self, clock: &Arc<dyn Clock>) -> Self {
        let (clock, machine_clock) = (DatabaseClock::new(Arc::clone(clock)), Arc::clone(clock));
        Self { clock, machine_clock, ..self.clone() }
    }

    /// The same configuration, in which all parts share what they know of the ledger's nodes.
    pub(crate) fn with_nodes(&self, clock: &Arc<dyn Clock>) -> Self {
        Self { nodes: self.node_pool(clock), ..self.clone() }
    }

    /// The clock of every part that stores or compares times: its time of day is the database's.
    pub(crate) fn clock(&self) -> Arc<dyn Clock> {
        Arc::new(self.clock.clone())
    }
}

/// The text of `docs/settings.md`.
pub fn settings_reference() -> String {
    grid_batch_settings::settings_reference(&SETTINGS)
}
