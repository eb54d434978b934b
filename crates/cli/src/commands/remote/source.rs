use std::env;

use clap::{Arg, ArgMatches, parser::ValueSource};
use grid_batch_service::{Config, SETTINGS};

use crate::commands::{flags, variables};

/// What an operator's command works on.
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
    /// What is named by a flag or, if none is, by the environment; otherwise the server of the default URL.
    pub(in crate::commands) fn of(matches: &ArgMatches) -> Self {
        let is_set = |names: &[&str]| names.iter().any(|name| env::var_os(name).is_some());
        if given(matches, "url") || given(matches, "profile") {
            Self::Server
        } else if given(matches, "config") || SETTINGS.iter().any(|it| given(matches, it.name)) {
            Self::Database
        } else if is_set(&[variables::URL, variables::PROFILE]) || !is_set(&DATABASE_VARIABLES) {
            Self::Server
        } else {
            Self::Database
        }
    }
}

fn given(matches: &ArgMatches, name: &str) -> bool {
    matches.value_source(name) == Some(ValueSource::CommandLine)
}

/// The flags of a command that uses a server, or the database.
pub(in crate::commands) fn flags_of_both() -> impl Iterator<Item = Arg> {
    super::server_flags().into_iter().chain(flags::of_database())
}
