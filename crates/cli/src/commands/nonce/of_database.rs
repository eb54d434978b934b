//! What is decided about nonces in a database, and which ones wait for a decision.

use std::process::ExitCode;

use clap::ArgMatches;
use grid_batch_core::{
    ActionEffect, ActionOutcome, OperatorStore, OperatorTarget, OperatorVerb, ServiceId,
};
use grid_batch_withdrawals::WithdrawalId;

use super::{NonceDecision, Nonces, one, print_change};
use crate::commands::{
    failure::Failure,
    operator::{Database, is_dry_run, operator_action},
    print::print_stdout,
};

pub(super) fn decide(
    matches: &ArgMatches,
    service: &ServiceId,
    nonces: &Nonces,
    decision: &NonceDecision,
) -> Result<ExitCode, Failure> {
    match decision {
        NonceDecision::Verb(verb) => act(matches, service, nonces, *verb),
        NonceDecision::Paid(id) => decide_paid(matches, service, nonces, id),
    }
}

fn act(
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

pub(super) fn list(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    for (service, nonce) in Database::to_read(matches)?.store.undecided_nonces()? {
        let reason = nonce.undecided.unwrap_or_default();
        print_stdout(format_args!("{service} {} {reason}", nonce.nonce));
    }
    Ok(ExitCode::SUCCESS)
}
