use std::{path::PathBuf, time::Duration};

use grid_batch_settings::{ConfigError, FilePath, Setting, SettingValues};
use grid_batch_support::ServicePattern;

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
        "After this time the coordinator of a circuit gives a batch up that not all nodes have \
         voted on; a batch does not count as lost before that (scabbard)",
    )
    .when(
        "Set it to the coordinator timeout of the circuits, if they were created with one. A \
         value that is too low may submit a batch again that is still applied.",
    )
    .equal(),
    Setting::list(
        "ledger.known_history",
        "",
        "Services whose clients submit each batch only through this server, or never again after \
         it was committed, as patterns in which * stands for any characters. Their batches are \
         sent without a proof that they are new (scabbard)",
    )
    .when("Set it to \"*\" if all clients of the services submit through this server.")
    .equal(),
    Setting::switch(
        "ledger.refuse_unknown_history",
        "false",
        "Refuse a batch when it is handed in, instead of holding it, if it is not known which \
         batches its service has committed and the request does not say that the batch is new \
         (scabbard)",
    )
    .when("Set it if clients can say that a batch is new, and no operator looks at held batches.")
    .equal(),
];

/// The values of [`SETTINGS`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScabbardSettings {
    /// The file with the secret key that authenticates the server to the ledger.
    pub key_file: Option<PathBuf>,
    /// After this time a circuit's coordinator gives a batch up that not all nodes have voted on.
    pub coordinator_timeout: Duration,
    /// The services whose clients submit only through this server, or never submit a batch again that was committed.
    pub known_history: Vec<ServicePattern>,
    /// Refuse batches of a service at intake, instead of holding them, if it is not known what it has committed.
    pub refuse_unknown_history: bool,
}

impl ScabbardSettings {
    /// Reads and checks them.
    pub fn new(values: &SettingValues) -> Result<Self, ConfigError> {
        values.check_shorter("ledger.coordinator_timeout", "ledger.late_arrival_limit")?;
        Ok(Self {
            key_file: values.get::<FilePath>("ledger.key_file")?.0,
            coordinator_timeout: values.get("ledger.coordinator_timeout")?,
            known_history: values.get_list("ledger.known_history")?,
            refuse_unknown_history: values.get("ledger.refuse_unknown_history")?,
        })
    }
}
