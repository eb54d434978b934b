use std::{fmt, path::PathBuf};

use thiserror::Error;

/// Why there is no configuration.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("the configuration {} cannot be read: {message}", file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// What the system says.
        message: String,
    },
    /// The file is no TOML.
    #[error("{origin}: this is no TOML: {message}")]
    Toml {
        /// Where.
        origin: Origin,
        /// What is wrong.
        message: String,
    },
    /// There is no setting of this name.
    #[error("{origin}: there is no setting {name}{}", did_you_mean(nearest))]
    Unknown {
        /// Where it stands.
        origin: Origin,
        /// The name.
        name: String,
        /// The setting that was perhaps meant.
        nearest: Option<String>,
    },
    /// A value is none that the setting can have.
    #[error("{origin}: {name} is {value}; {rule}")]
    Value {
        /// Where it stands.
        origin: Origin,
        /// The setting.
        name: String,
        /// The value.
        value: String,
        /// What it should be.
        rule: String,
    },
    /// A value does not go with another.
    #[error("{origin}: {rule}")]
    Together {
        /// Where the first of them stands.
        origin: Origin,
        /// What should be.
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

fn did_you_mean(nearest: &Option<String>) -> String {
    nearest.as_ref().map_or_else(String::new, |name| format!("; was {name} meant?"))
}
