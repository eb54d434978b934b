use std::{path::PathBuf, time::Duration};

use grid_batch_settings::{
    ConfigError, GivenValue, Setting, SettingValue, SettingValues, settings,
};
use grid_batch_support::ServicePattern;

use crate::new_batches::{NewBatchRules, UnknownHistory};

settings! {
    /// Settings of the ledger.
    #[derive(Debug, Clone)]
    pub struct LedgerSettings in "ledger." {
        /// File with the secret key that authenticates the server to the ledger (scabbard).
        ///
        /// Give the file mode 0600 and the server's user as its owner.
        pub key_file: Option<PathBuf> = text("").common(),
        /// After this time, the coordinator of a circuit gives up a batch on which not all nodes have voted; a batch does
        /// not count as lost before that (scabbard).
        ///
        /// Set it to the coordinator timeout of the circuits, if they were created with one. A value that is too low
        /// may submit a batch again that is still applied.
        pub coordinator_timeout: Duration = text("30s").equal(),
    }
}

settings! {
    /// Settings of services.
    #[derive(Debug, Clone)]
    pub struct ServiceSettings in "services.*." {
        /// What happens to a batch if it is not known which batches its service has committed and nothing proves that
        /// the batch is new. hold, as without it: it waits for an operator. refuse: it is refused when it is handed in,
        /// unless the request says that it is new. send: it is sent. The key is a service or a pattern in which *
        /// stands for any characters; the longest one that matches counts (scabbard).
        ///
        /// Use send for services whose clients submit each batch only through this server, or never again after it was
        /// committed. Use refuse if clients can say that a batch is new, and no operator looks at held batches.
        pub unknown_history: NewBatchRules = text("").equal() => new_batch_rules,
    }
}

/// The settings that only this adapter reads.
pub const SETTINGS: &[&[Setting]] = &[LedgerSettings::SETTINGS, ServiceSettings::SETTINGS];

/// The values of [`SETTINGS`].
#[derive(Debug, Clone)]
pub struct ScabbardSettings {
    /// Those of the ledger.
    pub ledger: LedgerSettings,
    /// Those of services.
    pub services: ServiceSettings,
}

impl ScabbardSettings {
    /// Reads and checks them. `late_arrival_limit` is the setting that the timeout of coordinators must be shorter than.
    pub fn new(values: &SettingValues, late_arrival_limit: &Setting) -> Result<Self, ConfigError> {
        values.check_shorter(&LedgerSettings::coordinator_timeout, late_arrival_limit)?;
        Ok(Self { ledger: LedgerSettings::read(values)?, services: ServiceSettings::read(values)? })
    }
}

fn new_batch_rules(
    values: &SettingValues,
    setting: &Setting,
) -> Result<NewBatchRules, ConfigError> {
    let rule = |given: &GivenValue| {
        let pattern: ServicePattern = given
            .key
            .as_deref()
            .unwrap_or_default()
            .parse()
            .map_err(|error| given.conflict(format!("{}: {error}", given.name())))?;
        Ok((pattern, given.get()?))
    };
    let rules = values.entries(setting).map(rule);
    Ok(NewBatchRules::new(rules.collect::<Result<Vec<_>, ConfigError>>()?))
}

impl SettingValue for UnknownHistory {
    fn parse(text: &str) -> Result<Self, String> {
        match text {
            "hold" => Ok(Self::Hold),
            "refuse" => Ok(Self::Refuse),
            "send" => Ok(Self::Send),
            _ => Err("it must be \"hold\", \"refuse\" or \"send\"".to_owned()),
        }
    }
}
