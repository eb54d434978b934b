use std::{io, path::PathBuf};

use serde_json::Value;

/// Why a chain cannot be had, or did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum ChainError {
    /// There is no anvil on this machine.
    #[error(
        "anvil, the EVM node of Foundry, is needed and was not found. `scripts/test` brings it; \
         else `npm install {package}` and put its directory `bin` on the PATH, or name the program \
         by GRID_BATCH_TEST_ANVIL"
    )]
    NotInstalled {
        /// The package that has the program for this machine.
        package: String,
    },
    /// A person named a program that is none.
    #[error(
        "GRID_BATCH_TEST_ANVIL names {path:?}, which is no file; it is to name anvil's program"
    )]
    NoProgram {
        /// What was named.
        path: PathBuf,
    },
    /// The program or what was to listen before it did not start.
    #[error("cannot start {what}")]
    Start {
        /// What was to start.
        what: &'static str,
        /// Why it did not.
        source: io::Error,
    },
    /// The node could not be asked.
    #[error("the node did not answer {method}")]
    NoAnswer {
        /// What it was asked.
        method: String,
        /// What went wrong.
        source: Box<ureq::Error>,
    },
    /// The node refused.
    #[error("the node refused {method}: {message} ({code})")]
    Refused {
        /// What it was asked.
        method: String,
        /// The number of its error.
        code: i64,
        /// Its words.
        message: String,
        /// What else it had to say, such as what a contract gave as reason.
        data: Option<Value>,
    },
    /// The node said something that is not understood here.
    #[error("{what} is to be {rule}, and the node said {value}")]
    Answer {
        /// What was looked at.
        what: &'static str,
        /// What it is to be.
        rule: &'static str,
        /// What it is.
        value: Value,
    },
}
