//! `nonce`: an operator's decisions about the nonces of a gas admin.

use std::{ops::RangeInclusive, process::ExitCode};

use clap::{Arg, ArgMatches, Command, builder::ValueParser, value_parser};
use grid_batch_core::{
    ActionEffect, ActionOutcome, OperatorStore, OperatorTarget, OperatorVerb, ServiceId,
};
use grid_batch_withdrawals::WithdrawalId;
use serde_json::json;

use crate::commands::{
    failure::Failure,
    operator::{Database, dry_run_flag, is_dry_run, operator_action, reason_flag},
    print::print_stdout,
    remote::{self, Server, Source, field},
};

/// The nonces from the first to the last one.
type Nonces = RangeInclusive<u64>;

/// What is decided about nonces.
#[derive(Debug, Clone)]
enum NonceDecision {
    Verb(OperatorVerb),
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
    let (Some(service), Some(nonces), Some(decision)) = (
        matches.get_one::<ServiceId>("service"),
        matches.get_one::<Nonces>("nonce"),
        matches.get_one::<NonceDecision>("decision"),
    ) else {
        return list(matches);
    };
    match (decision, Source::of(matches)) {
        (NonceDecision::Verb(verb), Source::Server) => {
            act_on_server(matches, service, nonces, *verb)
        }
        (NonceDecision::Verb(verb), Source::Database) => {
            act_on_database(matches, service, nonces, *verb)
        }
        (NonceDecision::Paid(id), _) => decide_paid(matches, service, nonces, id),
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

fn act_on_database(
    matches: &ArgMatches,
    service: &ServiceId,
    nonces: &Nonces,
    verb: OperatorVerb,
) -> Result<ExitCode, Failure> {
    let (service_id, first, last) = (service.clone(), *nonces.start(), *nonces.end());
    if verb == OperatorVerb::StartNonce {
        one(nonces)?;
    }
    let target = OperatorTarget::Nonces { service_id, first, last };
    let database = Database::to_write(matches)?;
    match database.store.act(&operator_action(matches, verb, target))? {
        ActionOutcome::Done(ActionEffect { before, after, .. }) => {
            print_change(matches, service, &before, &after);
            Ok(ExitCode::SUCCESS)
        }
        ActionOutcome::Refused(refusal) => {
            Err(Failure::new(format!("{service}: nothing changed: {refusal}")))
        }
        ActionOutcome::NotFound => Err(Failure::new(format!(
            "{service}: there is no such service; it exists when the first withdrawal is scheduled"
        ))),
    }
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

fn decide_paid(
    matches: &ArgMatches,
    service: &ServiceId,
    nonces: &Nonces,
    withdrawal: &WithdrawalId,
) -> Result<ExitCode, Failure> {
    let nonce = one(nonces)?;
    if is_dry_run(matches) {
        return Err(Failure::usage("a decision for a withdrawal has no dry run".to_owned()));
    }
    if !Database::to_write(matches)?.store.decide_nonce(service, nonce, withdrawal)? {
        return Err(Failure::new(format!(
            "nothing changed: nonce {nonce} of {service} is not undecided, or the withdrawal is not \
             open or has another nonce"
        )));
    }
    print_stdout(format_args!("nonce {nonce} of {service} is decided"));
    Ok(ExitCode::SUCCESS)
}

fn list(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    for (service, nonce) in Database::to_read(matches)?.store.undecided_nonces()? {
        let reason = nonce.undecided.unwrap_or_default();
        print_stdout(format_args!("{service} {} {reason}", nonce.nonce));
    }
    Ok(ExitCode::SUCCESS)
}
