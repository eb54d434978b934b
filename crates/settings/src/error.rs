use std::{fmt, path::PathBuf};

use thiserror::Error;

/// Why a configuration cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("the configuration {} cannot be read: {message}", file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// The error of the operating system.
        message: String,
    },
    /// The file is not TOML.
    #[error("{origin}: not valid TOML: {message}")]
    Toml {
        /// The line.
        origin: Origin,
        /// What is wrong.
        message: String,
    },
    /// There is no setting with this name.
    #[error("{origin}: there is no setting {name}{}", suggestion(nearest))]
    UnknownSetting {
        /// Where it was given.
        origin: Origin,
        /// The name.
        name: String,
        /// A setting with a similar name.
        nearest: Option<String>,
    },
    /// The setting is of a ledger whose adapter is not compiled in.
    #[error(
        "{origin}: there is no setting {name}, because this build has no adapter for {ledger}; build it with \
         --features {ledger}"
    )]
    NoAdapter {
        /// Where it was given.
        origin: Origin,
        /// The name.
        name: String,
        /// The name of the ledger, and of the feature.
        ledger: &'static str,
    },
    /// The setting cannot have this value.
    #[error("{origin}: {name} is {value}; {rule}")]
    Value {
        /// Where it was given.
        origin: Origin,
        /// The setting.
        name: String,
        /// The value, without secrets.
        value: String,
        /// What the value must be.
        rule: String,
    },
    /// A program registers a ledger, or a setting of one, whose name cannot be used.
    #[error("the ledger {name} cannot be registered: {rule}")]
    RegisteredLedger {
        /// The name of the ledger.
        name: String,
        /// The rule that it breaks.
        rule: String,
    },
    /// The file with a setting's value cannot be used.
    #[error("{origin}: the file of {name}, {}, cannot be read: {message}", file.display())]
    SettingFile {
        /// Where the file was given.
        origin: Origin,
        /// The setting.
        name: String,
        /// The file.
        file: PathBuf,
        /// The reason.
        message: String,
    },
    /// The value was printed without its secret.
    #[error(
        "{origin}: {name} has *** in place of a secret, as `grid-batch config` prints it without \
         --show-secrets; write the secret, or write {{ file = \"PATH\" }} with a file that contains it, or set \
         the variable {variable}"
    )]
    Placeholder {
        /// Where it was given.
        origin: Origin,
        /// The setting.
        name: String,
        /// The variable that the value can be given in.
        variable: String,
    },
    /// Two settings contradict each other.
    #[error("{origin}: {rule}")]
    Conflict {
        /// Where the first of them was given.
        origin: Origin,
        /// The rule that they break.
        rule: String,
    },
}

/// Where a value was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// Nowhere: it is the default.
    Default,
    /// In the file.
    File {
        /// The file.
        file: PathBuf,
        /// The line, counted from 1.
        line: usize,
    },
    /// In the environment.
    Variable(String),
    /// On the command line.
    Flag(String),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("the default"),
            Self::File { file, line } => write!(f, "line {line} of {}", file.display()),
            Self::Variable(name) => write!(f, "the variable {name}"),
            Self::Flag(name) => write!(f, "the flag --{name}"),
        }
    }
}

fn suggestion(nearest: &Option<String>) -> String {
    nearest.as_ref().map_or_else(String::new, |name| format!("; did you mean {name}?"))
}
