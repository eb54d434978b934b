//! The arguments that name a batch, and the answers of commands that change one.

use clap::{Arg, ArgMatches, value_parser};
use grid_batch_core::{HeaderId, ServiceId};
use grid_batch_store::Store;

use crate::commands::{failure::Failure, flags};

/// The batch that a command is about.
pub(crate) struct BatchKey<'a> {
    pub(crate) service: &'a ServiceId,
    pub(crate) batch: &'a HeaderId,
}

impl BatchKey<'_> {
    pub(crate) fn arguments() -> [Arg; 2] {
        let service = Arg::new("service")
            .required(true)
            .value_parser(value_parser!(ServiceId))
            .help("Id of the service");
        let batch = Arg::new("batch")
            .required(true)
            .value_parser(value_parser!(HeaderId))
            .help("Id of the batch");
        [service, batch]
    }
}

pub(crate) fn batch_key(matches: &ArgMatches) -> Result<BatchKey<'_>, Failure> {
    match (matches.get_one("service"), matches.get_one("batch")) {
        (Some(service), Some(batch)) => Ok(BatchKey { service, batch }),
        _ => Err(Failure::new("a service and a batch must be given")),
    }
}

/// The flag with the reason of what an operator does.
pub(crate) fn reason_flag() -> Arg {
    Arg::new("reason").long("reason").value_name("TEXT").help("Why, as it is shown with the batch")
}

pub(crate) fn reason(matches: &ArgMatches) -> Option<&str> {
    matches.get_one::<String>("reason").map(String::as_str)
}

pub(crate) fn open_store(matches: &ArgMatches) -> Result<Store, Failure> {
    let config = flags::load(matches)?;
    Ok(Store::open(&config.database, config.store)?)
}

pub(crate) fn no_such_batch() -> Failure {
    Failure::new("the service has no such batch")
}
