use clap::{Arg, ArgAction, ArgMatches};
use grid_batch_core::{Clock, Timestamp};
use grid_batch_service::Config;
use grid_batch_store::{DatabaseUrl, Store, StoreOptions};
use serde_json::Value;

use crate::commands::{failure::Failure, flags, print::print_stdout};

/// The database that a command works on. It is never created.
pub(in crate::commands) struct Database {
    pub(in crate::commands) store: Store,
    url: DatabaseUrl,
    /// Whether the configuration has pools, and so their payment limits.
    #[cfg(feature = "evm")]
    pub(in crate::commands) knows_pools: bool,
}

impl Database {
    /// Opens it to read, for which the rights to read are enough.
    pub(in crate::commands) fn to_read(matches: &ArgMatches) -> Result<Self, Failure> {
        Self::open_to_read(flags::load(matches)?)
    }

    /// Opens it to record what an operator does.
    pub(in crate::commands) fn to_write(matches: &ArgMatches) -> Result<Self, Failure> {
        Self::open_to_write(flags::load(matches)?)
    }

    /// Opens it to schedule withdrawals within the payment limits of the settings, or to read which ones
    /// would be scheduled.
    #[cfg(feature = "evm")]
    pub(in crate::commands) fn to_schedule(
        matches: &ArgMatches,
        is_confirmed: bool,
    ) -> Result<Self, Failure> {
        let config = flags::load(matches)?.with_payment_limits()?;
        if is_confirmed { Self::open_to_write(config) } else { Self::open_to_read(config) }
    }

    fn open_to_read(config: Config) -> Result<Self, Failure> {
        let store = Store::open_to_read(&config.database, config.store.clone())?;
        Ok(Self::new(store, config))
    }

    fn open_to_write(config: Config) -> Result<Self, Failure> {
        let options = StoreOptions { leaves_policies: true, ..config.store.clone() };
        let store = Store::open_existing(&config.database, options)?;
        Ok(Self::new(store, config))
    }

    fn new(store: Store, config: Config) -> Self {
        Self {
            store,
            #[cfg(feature = "evm")]
            knows_pools: config.has_pools(),
            url: config.database,
        }
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

/// Why a command about withdrawals does nothing in a database.
#[cfg(not(feature = "evm"))]
pub(in crate::commands) fn without_withdrawals() -> Failure {
    Failure::usage(
        "this build knows the withdrawals of a running server only: give --url, or build it with --features evm",
    )
}

pub(in crate::commands) fn json_flag() -> Arg {
    Arg::new("json")
        .long("json")
        .action(ArgAction::SetTrue)
        .help("Print a JSON object instead of text; docs/operations.md describes its fields")
}

pub(in crate::commands) fn wants_json(matches: &ArgMatches) -> bool {
    matches.get_flag("json")
}

pub(in crate::commands) fn print_json(document: &Value) {
    print_stdout(format_args!("{document:#}"));
}

/// The flag with the reason of what an operator does.
pub(in crate::commands) fn reason_flag() -> Arg {
    Arg::new("reason").long("reason").value_name("TEXT").help("Why, as it is shown with the batch")
}

pub(in crate::commands) fn reason(matches: &ArgMatches) -> Option<&str> {
    matches.get_one::<String>("reason").map(String::as_str)
}
