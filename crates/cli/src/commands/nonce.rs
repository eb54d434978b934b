//! `nonce`: an operator's decisions about the nonces of a gas admin.

use std::{ops::RangeInclusive, process::ExitCode};

use clap::Args;
use grid_batch_core::ServiceId;
use grid_batch_withdrawals::WithdrawalId;
use serde_json::json;

use crate::commands::{
    arguments::{Asked, DryRun, SourceArgs},
    failure::Failure,
    print::print_stdout,
    remote::{self, Server, change, entries, field},
};

/// The nonces from the first to the last one.
type Nonces = RangeInclusive<u64>;

/// Lists the undecided nonces of gas admins, or records an operator's decision about nonces
#[derive(Debug, Args)]
pub(crate) struct NonceArgs {
    /// Id of the gas admin's service
    #[arg(requires = "decision")]
    service: Option<ServiceId>,
    /// The nonce, or the first and the last of several
    #[arg(value_name = "NONCE|FIRST-LAST", value_parser = parse_nonces)]
    nonce: Option<Nonces>,
    /// elsewhere: the undecided nonces were used for nothing that is open; the id of a withdrawal or transaction: the
    /// nonce was used for it; start: this nonce is the next one of the gas admin, and those below it were used for
    /// nothing that is open; fill: the nonces are free, and each gets an empty transfer, so that transactions with
    /// higher nonces can be mined
    #[arg(requires = "reason", value_parser = parse_decision)]
    decision: Option<String>,
    /// Reason, for the log of operators' actions
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    #[command(flatten)]
    run: DryRun,
    #[command(flatten)]
    source: SourceArgs,
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

fn parse_decision(text: &str) -> Result<String, String> {
    if matches!(text, "elsewhere" | "start" | "fill") {
        return Ok(text.to_owned());
    }
    text.parse::<WithdrawalId>().map(|id| id.to_string()).map_err(|error| {
        format!(
            "{error}; expected elsewhere, start, fill, or the id of a withdrawal or transaction"
        )
    })
}

pub(crate) fn run(args: &NonceArgs) -> Result<ExitCode, Failure> {
    remote::check_withdrawals(&args.source)?;
    match (&args.service, &args.nonce, &args.decision) {
        (Some(service), Some(nonces), Some(decision)) => decide(args, service, nonces, decision),
        _ => list(args),
    }
}

fn list(args: &NonceArgs) -> Result<ExitCode, Failure> {
    let undecided = Server::to_read(&args.source)?.client.get("/v1/nonces", &[])?;
    for nonce in entries(&undecided, "data") {
        let (service, reason) = (field(nonce, "service_id"), field(nonce, "reason"));
        print_stdout(format_args!("{service} {} {reason}", field(nonce, "nonce")));
    }
    Ok(ExitCode::SUCCESS)
}

fn decide(
    args: &NonceArgs,
    service: &ServiceId,
    nonces: &Nonces,
    decision: &str,
) -> Result<ExitCode, Failure> {
    let (first, last) = (nonces.start(), nonces.end());
    let (action, fields) = match decision {
        "elsewhere" | "fill" => (decision, json!({ "first": first, "last": last })),
        "start" => (decision, json!({ "nonce": one(nonces)? })),
        withdrawal => ("paid", json!({ "nonce": one(nonces)?, "withdrawal": withdrawal })),
    };
    let path = remote::action_path("services", service.as_str(), &format!("nonces/{action}"));
    let asked = Asked { reason: args.reason.clone().unwrap_or_default(), run: args.run };
    let done = Server::to_act(&args.source)?.act(&asked, &path, &[], fields);
    let done = done.map_err(|error| Server::failed(error).about(service.as_str()))?;
    print_stdout(format_args!("{}{service}: {}", args.run.would(), change(&done)));
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
