use std::{path::PathBuf, time::Duration};

use grid_batch_settings::{ConfigError, FilePath, GivenValue, Setting, SettingValues};
use grid_batch_support::ServicePattern;

use crate::new_batches::{NewBatchRules, UnknownHistory};

/// The settings that only this adapter reads.
pub static SETTINGS: &[Setting] = &[
    Setting::text(
        "ledger.key_file",
        "",
        "File with the secret key that authenticates the server to the ledger (scabbard)",
    )
    .when("Give the file mode 0600 and the server's user as its owner."),
    Setting::text(
        "ledger.coordinator_timeout",
        "30s",
        "After this time, the coordinator of a circuit gives up a batch on which not all nodes have \
         voted; a batch does not count as lost before that (scabbard)",
    )
    .when(
        "Set it to the coordinator timeout of the circuits, if they were created with one. A \
         value that is too low may submit a batch again that is still applied.",
    )
    .equal(),
    Setting::text(
        "services.*.unknown_history",
        "",
        "What happens to a batch if it is not known which batches its service has committed and \
         nothing proves that the batch is new. hold, as without it: it waits for an operator. \
         refuse: it is refused when it is handed in, unless the request says that it is new. \
         send: it is sent. The key is a service or a pattern in which * stands for any \
         characters; the longest one that matches counts (scabbard)",
    )
    .when(
        "Use send for services whose clients submit each batch only through this server, or never \
         again after it was committed. Use refuse if clients can say that a batch is new, and no \
         operator looks at held batches.",
    )
    .equal(),
];

/// The values of [`SETTINGS`].
#[derive(Debug, Clone)]
pub struct ScabbardSettings {
    /// The file with the secret key that authenticates the server to the ledger.
    pub key_file: Option<PathBuf>,
    /// After this time, a circuit's coordinator gives up a batch on which not all nodes have voted.
    pub coordinator_timeout: Duration,
    /// What happens to a batch of these services that is not proved to be new.
    pub new_batches: NewBatchRules,
}

impl ScabbardSettings {
    /// Reads and checks them.
    pub fn new(values: &SettingValues) -> Result<Self, ConfigError> {
        values.check_shorter("ledger.coordinator_timeout", "ledger.late_arrival_limit")?;
        Ok(Self {
            key_file: values.get::<FilePath>("ledger.key_file")?.0,
            coordinator_timeout: values.get("ledger.coordinator_timeout")?,
            new_batches: new_batch_rules(values)?,
        })
    }
}

fn new_batch_rules(values: &SettingValues) -> Result<NewBatchRules, ConfigError> {
    let rule = |given: &GivenValue| {
        let pattern: ServicePattern = given
            .key
            .as_deref()
            .unwrap_or_default()
            .parse()
            .map_err(|error| given.conflict(format!("{}: {error}", given.name())))?;
        Ok((pattern, given.get_with(parse_unknown_history)?))
    };
    let rules = values.entries("services.*.unknown_history").map(rule);
    Ok(NewBatchRules::new(rules.collect::<Result<Vec<_>, ConfigError>>()?))
}

fn parse_unknown_history(text: &str) -> Result<UnknownHistory, String> {
    match text {
        "hold" => Ok(UnknownHistory::Hold),
        "refuse" => Ok(UnknownHistory::Refuse),
        "send" => Ok(UnknownHistory::Send),
        _ => Err("it must be \"hold\", \"refuse\" or \"send\"".to_owned()),
    }
}
