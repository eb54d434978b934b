//! `nonce`: an operator's decisions about the nonces of a gas admin.

#[cfg(feature = "evm")]
mod of_database;

use std::{ops::RangeInclusive, process::ExitCode};

use clap::{Arg, ArgMatches, Command, builder::ValueParser, value_parser};
use grid_batch_core::{OperatorVerb, ServiceId};
use grid_batch_withdrawals::WithdrawalId;
use serde_json::json;

#[cfg(not(feature = "evm"))]
use crate::commands::operator::without_withdrawals;
use crate::commands::{
    failure::Failure,
    operator::{dry_run_flag, is_dry_run, reason_flag},
    print::print_stdout,
    remote::{self, Server, Source, field},
};

/// The nonces from the first to the last one.
type Nonces = RangeInclusive<u64>;

/// What is decided about nonces.
#[derive(Debug, Clone)]
enum NonceDecision {
    Verb(OperatorVerb),
    #[cfg_attr(
        not(feature = "evm"),
        expect(dead_code, reason = "it is recorded in a database with withdrawals only")
    )]
    Paid(WithdrawalId),
}

pub(crate) fn command() -> Command {
    Command::new("nonce")
        .about(
            "Lists the undecided nonces of gas admins, or records an operator's decision about nonces",
        )
        .arg(
            Arg::new("service")
                .value_parser(value_parser!(ServiceId))
                .requires("decision")
                .help("Id of the gas admin's service"),
        )
        .arg(
            Arg::new("nonce")
                .value_name("NONCE|FIRST-LAST")
                .value_parser(ValueParser::new(parse_nonces))
                .help("The nonce, or the first and the last of several"),
        )
        .arg(Arg::new("decision").value_parser(ValueParser::new(parse_decision)).help(
            "elsewhere: the undecided nonces were used for no open withdrawal; the id of a withdrawal: the nonce \
             was used for it; start: this nonce is the next one of the gas admin, and those below it were used for \
             no open withdrawal; fill: the nonces are free, and each gets an empty transfer, so that transactions \
             with higher nonces can be mined",
        ))
        .arg(reason_flag())
        .arg(dry_run_flag())
        .args(remote::flags_of_both())
}

fn parse_nonces(text: &str) -> Result<Nonces, String> {
    let nonce = |text: &str| text.parse::<u64>().map_err(|error| format!("{text:?}: {error}"));
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let nonces = nonce(first)?..=nonce(last)?;
    if nonces.is_empty() {
        Err("the first nonce is above the last one".to_owned())
    } else {
        Ok(nonces)
    }
}

fn parse_decision(text: &str) -> Result<NonceDecision, String> {
    Ok(match text {
        "elsewhere" => NonceDecision::Verb(OperatorVerb::NoncesElsewhere),
        "start" => NonceDecision::Verb(OperatorVerb::StartNonce),
        "fill" => NonceDecision::Verb(OperatorVerb::FillNonces),
        id => NonceDecision::Paid(id.parse().map_err(|error| {
            format!("{error}; say elsewhere, start, fill, or the id of a withdrawal")
        })?),
    })
}

pub(crate) fn run(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let decided = (
        matches.get_one::<ServiceId>("service"),
        matches.get_one::<Nonces>("nonce"),
        matches.get_one::<NonceDecision>("decision"),
    );
    match decided {
        (Some(service), Some(nonces), Some(NonceDecision::Verb(verb)))
            if Source::of(matches) == Source::Server =>
        {
            act_on_server(matches, service, nonces, *verb)
        }
        #[cfg(feature = "evm")]
        (Some(service), Some(nonces), Some(decision)) => {
            of_database::decide(matches, service, nonces, decision)
        }
        #[cfg(feature = "evm")]
        _ => of_database::list(matches),
        #[cfg(not(feature = "evm"))]
        _ => Err(without_withdrawals()),
    }
}

fn act_on_server(
    matches: &ArgMatches,
    service: &ServiceId,
    nonces: &Nonces,
    verb: OperatorVerb,
) -> Result<ExitCode, Failure> {
    let (first, last) = (nonces.start(), nonces.end());
    let (action, fields) = match verb {
        OperatorVerb::StartNonce => ("nonces/start", json!({ "nonce": one(nonces)? })),
        OperatorVerb::FillNonces => ("nonces/fill", json!({ "first": first, "last": last })),
        _ => ("nonces/elsewhere", json!({ "first": first, "last": last })),
    };
    let path = remote::action_path("services", service.as_str(), action);
    let done = Server::of(matches)?.act(matches, &path, &[], fields)?;
    let changed = &done["changed"];
    print_change(matches, service, &field(changed, "from"), &field(changed, "to"));
    Ok(ExitCode::SUCCESS)
}

fn print_change(matches: &ArgMatches, service: &ServiceId, before: &str, after: &str) {
    let would = if is_dry_run(matches) { "nothing changed; without --dry-run: " } else { "" };
    print_stdout(format_args!("{would}{service}: {before} -> {after}"));
}

/// The only nonce.
fn one(nonces: &Nonces) -> Result<u64, Failure> {
    if nonces.start() == nonces.end() {
        Ok(*nonces.start())
    } else {
        Err(Failure::usage("this decision is about one nonce".to_owned()))
    }
}
