use std::env;

use grid_batch_service::Config;

use crate::commands::{arguments::SourceArgs, failure::Failure, variables};

/// The server or database that an operator's command works on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::commands) enum Source {
    /// A running server, over HTTP.
    Server,
    /// The database itself, which needs no server.
    Database,
}

/// The variables of a server's environment that name its database.
const DATABASE_VARIABLES: [&str; 3] =
    [Config::FILE_VARIABLE, "GRID_BATCH_DATABASE", "GRID_BATCH_DATABASE_FILE"];

impl Source {
    /// The source that a flag names, otherwise the one that the environment names, otherwise the server at the default
    /// URL.
    pub(in crate::commands) fn of(args: &SourceArgs) -> Self {
        let is_set = |names: &[&str]| names.iter().any(|name| env::var_os(name).is_some());
        if args.server.url.is_some() || args.server.profile.is_some() {
            Self::Server
        } else if args.settings.is_any_given() {
            Self::Database
        } else if is_set(&[variables::URL, variables::PROFILE]) || !is_set(&DATABASE_VARIABLES) {
            Self::Server
        } else {
            Self::Database
        }
    }
}

/// Refuses a command about withdrawals on a database if this build does not know their tables.
pub(in crate::commands) fn check_withdrawals(args: &SourceArgs) -> Result<(), Failure> {
    if Source::of(args) == Source::Server || cfg!(feature = "evm") {
        return Ok(());
    }
    Err(Failure::usage(
        "this build can only ask a running server about withdrawals: give --url, or build it with --features evm",
    ))
}
