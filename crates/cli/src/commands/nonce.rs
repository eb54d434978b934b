//! `nonce`: an operator's decisions about the nonces of a gas admin.

use std::{ops::RangeInclusive, process::ExitCode};

use clap::{Arg, ArgMatches, Command, builder::ValueParser, value_parser};
use grid_batch_core::ServiceId;
use grid_batch_withdrawals::WithdrawalId;
use serde_json::json;

use crate::commands::{
    failure::Failure,
    operator::{dry_run_flag, is_dry_run, reason_flag},
    print::print_stdout,
    remote::{self, Server, field},
};

/// The nonces from the first to the last one.
type Nonces = RangeInclusive<u64>;

/// A decision about nonces.
#[derive(Debug, Clone)]
enum NonceDecision {
    Elsewhere,
    Start,
    Fill,
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
        .arg(Arg::new("decision").requires("reason").value_parser(ValueParser::new(parse_decision)).help(
            "elsewhere: the undecided nonces were used for no open withdrawal; the id of a withdrawal: the nonce \
             was used for it; start: this nonce is the next one of the gas admin, and those below it were used for \
             no open withdrawal; fill: the nonces are free, and each gets an empty transfer, so that transactions \
             with higher nonces can be mined",
        ))
        .arg(reason_flag().required(false))
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
        "elsewhere" => NonceDecision::Elsewhere,
        "start" => NonceDecision::Start,
        "fill" => NonceDecision::Fill,
        id => NonceDecision::Paid(id.parse().map_err(|error| {
            format!("{error}; expected elsewhere, start, fill, or the id of a withdrawal")
        })?),
    })
}

pub(crate) fn run(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    remote::check_withdrawals(matches)?;
    let decided = (
        matches.get_one::<ServiceId>("service"),
        matches.get_one::<Nonces>("nonce"),
        matches.get_one::<NonceDecision>("decision"),
    );
    match decided {
        (Some(service), Some(nonces), Some(decision)) => decide(matches, service, nonces, decision),
        _ => list(matches),
    }
}

fn list(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let undecided = Server::to_read(matches)?.client.get("/v1/nonces", &[])?;
    for nonce in undecided["data"].as_array().into_iter().flatten() {
        let (service, reason) = (field(nonce, "service_id"), field(nonce, "reason"));
        print_stdout(format_args!("{service} {} {reason}", field(nonce, "nonce")));
    }
    Ok(ExitCode::SUCCESS)
}

fn decide(
    matches: &ArgMatches,
    service: &ServiceId,
    nonces: &Nonces,
    decision: &NonceDecision,
) -> Result<ExitCode, Failure> {
    let (first, last) = (nonces.start(), nonces.end());
    let (action, fields) = match decision {
        NonceDecision::Elsewhere => ("elsewhere", json!({ "first": first, "last": last })),
        NonceDecision::Fill => ("fill", json!({ "first": first, "last": last })),
        NonceDecision::Start => ("start", json!({ "nonce": one(nonces)? })),
        NonceDecision::Paid(withdrawal) => {
            ("paid", json!({ "nonce": one(nonces)?, "withdrawal": withdrawal.to_string() }))
        }
    };
    let path = remote::action_path("services", service.as_str(), &format!("nonces/{action}"));
    let server = Server::to_act(matches)?;
    let done = server.act(matches, &path, &[], fields);
    let done = done.map_err(|error| Server::failed(error).about(service.as_str()))?;
    let changed = &done["changed"];
    let would = if is_dry_run(matches) { "nothing changed; without --dry-run: " } else { "" };
    let (before, after) = (field(changed, "from"), field(changed, "to"));
    print_stdout(format_args!("{would}{service}: {before} -> {after}"));
    Ok(ExitCode::SUCCESS)
}

/// The only nonce.
fn one(nonces: &Nonces) -> Result<u64, Failure> {
    if nonces.start() == nonces.end() {
        Ok(*nonces.start())
    } else {
        Err(Failure::usage("this decision is about one nonce".to_owned()))
    }
}
