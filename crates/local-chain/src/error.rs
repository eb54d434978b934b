use std::{io, path::PathBuf};

use serde_json::Value;

/// Why a chain did not start, or did not do what was requested.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ChainError {
    /// Anvil is not installed.
    #[error(
        "anvil, the EVM node of Foundry, was not found. `scripts/test` installs it; otherwise run \
         `npm install {package}` and put its directory `bin` on the PATH, or set \
         GRID_BATCH_TEST_ANVIL to the program"
    )]
    NotInstalled {
        /// The npm package that has the program for this machine.
        package: String,
    },
    /// A node is not installed.
    #[error("{name} was not found. `scripts/test` installs it; otherwise run {how}")]
    NodeNotInstalled {
        /// The node.
        name: &'static str,
        /// How to install it.
        how: &'static str,
    },
    /// The environment variable names a program that does not exist.
    #[error(
        "{variable} is {path:?}, which is not a file; set it to the path of the node's program"
    )]
    NoProgram {
        /// The variable.
        variable: &'static str,
        /// Its value.
        path: PathBuf,
    },
    /// The node or the proxy did not start.
    #[error("cannot start {what}")]
    Start {
        /// What did not start.
        what: &'static str,
        /// The reason.
        source: io::Error,
    },
    /// There was no response from the node.
    #[error("no response from the node to {method}")]
    NoResponse {
        /// The method that was called.
        method: String,
        /// The reason.
        source: Box<ureq::Error>,
    },
    /// The node returned an error.
    #[error("the node refused {method}: {message} ({code})")]
    Refused {
        /// The method that was called.
        method: String,
        /// The error's code.
        code: i64,
        /// The error's message.
        message: String,
        /// The error's data, such as the reason of a contract.
        data: Option<Value>,
    },
    /// The node's response has another form than expected.
    #[error("{what} must be {expected}; the node returned {value}")]
    InvalidResponse {
        /// The value that was read.
        what: &'static str,
        /// Its expected form.
        expected: &'static str,
        /// The value.
        value: Value,
    },
}
