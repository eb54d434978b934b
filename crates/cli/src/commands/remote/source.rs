use std::env;

use clap::{Arg, ArgMatches, parser::ValueSource};
use grid_batch_service::Config;

use crate::commands::{
    failure::Failure,
    flags,
    operator::{dry_run_flag, json_flag, reason_flag},
    variables,
};

/// The server or database that an operator's command works on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::commands) enum Source {
    /// A running server, over HTTP.
    Server,
    /// The database itself, which needs no server.
    Database,
}

const CONFIG_HELP: &str = "Works on the database of this configuration file, without a server";
const DATABASE_HELP: &str =
    "Works on this database, without a server: sqlite://FILE or postgresql://USER@HOST/DATABASE";

/// The variables of a server's environment that name its database.
const DATABASE_VARIABLES: [&str; 3] =
    [Config::FILE_VARIABLE, "GRID_BATCH_DATABASE", "GRID_BATCH_DATABASE_FILE"];

impl Source {
    /// The source that a flag names, otherwise the one that the environment names, otherwise the server at the default
    /// URL.
    pub(in crate::commands) fn of(matches: &ArgMatches) -> Self {
        let is_set = |names: &[&str]| names.iter().any(|name| env::var_os(name).is_some());
        if given(matches, "url") || given(matches, "profile") {
            Self::Server
        } else if given(matches, "config") || flags::all().iter().any(|it| given(matches, &it.name))
        {
            Self::Database
        } else if is_set(&[variables::URL, variables::PROFILE]) || !is_set(&DATABASE_VARIABLES) {
            Self::Server
        } else {
            Self::Database
        }
    }
}

/// Refuses a command about withdrawals on a database if this build does not know their tables.
pub(in crate::commands) fn check_withdrawals(matches: &ArgMatches) -> Result<(), Failure> {
    if Source::of(matches) == Source::Server || cfg!(feature = "evm") {
        return Ok(());
    }
    Err(Failure::usage(
        "this build can only ask a running server about withdrawals: give --url, or build it with --features evm",
    ))
}

fn given(matches: &ArgMatches, name: &str) -> bool {
    matches.value_source(name) == Some(ValueSource::CommandLine)
}

/// The flags of a command that uses a server, or the database.
pub(in crate::commands) fn flags_of_both() -> impl Iterator<Item = Arg> {
    let databases = flags::of_database().map(|flag| match flag.get_id().as_str() {
        "config" => flag.help(CONFIG_HELP).long_help(CONFIG_HELP),
        "database" => flag.help(DATABASE_HELP).long_help(DATABASE_HELP),
        _ => flag,
    });
    super::server_flags().into_iter().chain(databases)
}

/// The flags of a command that changes something, at a server or in a database.
pub(in crate::commands) fn action_flags() -> impl Iterator<Item = Arg> {
    [reason_flag(), dry_run_flag(), json_flag()].into_iter().chain(flags_of_both())
}
