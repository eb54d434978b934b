//! `nonce`: an operator's decision about a nonce of which it is not known what it was used for.

use std::process::ExitCode;

use clap::{Arg, ArgMatches, Command, value_parser};
use grid_batch_core::ServiceId;
use grid_batch_store::Store;
use grid_batch_withdrawals::WithdrawalId;

use crate::commands::{failure::Failure, flags, print::print_stdout};

/// Stands for no withdrawal.
const ELSEWHERE: &str = "elsewhere";

pub(crate) fn command() -> Command {
    Command::new("nonce")
        .about(
            "Lists the nonces of which it cannot be decided what they were used for, or records an \
             operator's decision about one",
        )
        .arg(
            Arg::new("service")
                .value_parser(value_parser!(ServiceId))
                .requires("decision")
                .help("Id of the gas admin's service"),
        )
        .arg(Arg::new("nonce").value_parser(value_parser!(u64)).help("The nonce"))
        .arg(Arg::new("decision").help(
            "elsewhere: it was used for no withdrawal of this server, or for one that has ended; \
             or the id of the open withdrawal that it was used for",
        ))
        .args(flags::of_database())
}

pub(crate) fn run(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let config = flags::load(matches)?;
    let store = Store::open_existing(&config.database, config.store)?;
    let (Some(service), Some(nonce), Some(decision)) = (
        matches.get_one::<ServiceId>("service"),
        matches.get_one::<u64>("nonce"),
        matches.get_one::<String>("decision"),
    ) else {
        return list(&store);
    };
    let withdrawal: Option<WithdrawalId> = match decision.as_str() {
        ELSEWHERE => None,
        id => Some(id.parse().map_err(|error| {
            Failure::new(format!("{error}; say \"{ELSEWHERE}\" or the id of a withdrawal"))
        })?),
    };
    if !store.decide_nonce(service, *nonce, withdrawal.as_ref())? {
        return Err(Failure::new(format!(
            "nothing changed: nonce {nonce} of {service} is not undecided, or the withdrawal is not \
             open or has another nonce"
        )));
    }
    print_stdout(format_args!("nonce {nonce} of {service} is decided"));
    Ok(ExitCode::SUCCESS)
}

fn list(store: &Store) -> Result<ExitCode, Failure> {
    for (service, nonce) in store.undecided_nonces()? {
        let reason = nonce.undecided.unwrap_or_default();
        print_stdout(format_args!("{service} {} {reason}", nonce.nonce));
    }
    Ok(ExitCode::SUCCESS)
}
