use clap::{Arg, ArgAction, ArgMatches};
use grid_batch_core::{Clock, Timestamp};
use grid_batch_service::Config;
use grid_batch_store::{DatabaseUrl, Store};
use serde_json::Value;

use crate::commands::{failure::Failure, flags, print::print_stdout};

/// The database that a command works on. It is never created.
pub(in crate::commands) struct Database {
    pub(in crate::commands) store: Store,
    url: DatabaseUrl,
}

impl Database {
    /// Opens it to read, for which the rights to read are enough.
    pub(in crate::commands) fn to_read(matches: &ArgMatches) -> Result<Self, Failure> {
        let config = flags::load(matches)?;
        Ok(Self::new(Store::open_to_read(&config.database, config.store.clone())?, config))
    }

    /// Opens it to record what an operator does.
    pub(in crate::commands) fn to_write(matches: &ArgMatches) -> Result<Self, Failure> {
        let config = flags::load(matches)?;
        Ok(Self::new(Store::open_for_command(&config.database, config.store.clone())?, config))
    }

    fn new(store: Store, config: Config) -> Self {
        Self { store, url: config.database }
    }

    /// Its URL without the password.
    pub(in crate::commands) fn name(&self) -> String {
        self.url.to_string()
    }

    /// The time by the database's clock.
    pub(in crate::commands) fn now(&self) -> Timestamp {
        self.store.clock().now()
    }
}

pub(in crate::commands) fn json_flag() -> Arg {
    Arg::new("json").long("json").action(ArgAction::SetTrue).help(
        "Print a JSON object instead of text, with the fields of the interface (docs/http.md)",
    )
}

pub(in crate::commands) fn wants_json(matches: &ArgMatches) -> bool {
    matches.get_flag("json")
}

pub(in crate::commands) fn print_json(document: &Value) {
    print_stdout(format_args!("{document:#}"));
}
