//! `held`, `hold` and `release`: batches that wait for an operator.

use std::process::ExitCode;

use clap::{ArgMatches, Command};
use grid_batch_core::{BatchState, ChangeOutcome, StoredBatch};

use crate::commands::{
    batch_key::{BatchKey, batch_key, no_such_batch, open_store, reason, reason_flag},
    failure::Failure,
    flags,
    print::print_stdout,
};

pub(crate) fn held_command() -> Command {
    Command::new("held")
        .about(
            "Lists the batches that are held for an operator: service, batch, attempt and the reason",
        )
        .args(flags::settings())
}

pub(crate) fn hold_command() -> Command {
    Command::new("hold")
        .about(
            "Holds an open batch: it is not sent, or not sent again, before it is released or decided",
        )
        .long_about(
            "Holds an open batch: it is not sent, or not sent again, before it is released or decided. \
             Later batches of its service wait. A batch that is at the ledger is followed, and ends \
             when the ledger reports a final status. A submission that is under way is not stopped. \
             A batch that waits behind another one is held when its turn comes.",
        )
        .args(BatchKey::arguments())
        .arg(reason_flag().required(true))
        .args(flags::settings())
}

pub(crate) fn release_command() -> Command {
    Command::new("release")
        .about(
            "Ends the hold of a batch, so that it continues by the ordinary rules, which may hold it \
             again",
        )
        .args(BatchKey::arguments())
        .arg(reason_flag())
        .args(flags::settings())
}

pub(crate) fn list(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    const PAGE: usize = 500;
    let store = open_store(matches)?;
    let mut after = None;
    loop {
        let held = store.held_batches(after.as_ref(), PAGE)?;
        held.iter().for_each(print_held);
        match held.last() {
            Some(last) if held.len() == PAGE => after = Some(last.service_id.clone()),
            _ => break,
        }
    }
    store.waiting_holds()?.iter().for_each(print_held);
    Ok(ExitCode::SUCCESS)
}

fn print_held(batch: &StoredBatch) {
    let reason = batch.held.as_ref().map_or("", |hold| hold.reason.as_str());
    let StoredBatch { service_id, batch_id, progress, .. } = batch;
    // A reason may end with the last error already.
    let error = batch.last_error.as_deref().filter(|error| !reason.contains(*error));
    let error = error.map(|error| format!(" ({error})")).unwrap_or_default();
    print_stdout(format_args!("{service_id} {batch_id} {} {reason}{error}", progress.attempts));
}

pub(crate) fn hold(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let BatchKey { service, batch } = batch_key(matches)?;
    let reason = reason(matches).unwrap_or_default();
    let state = applied(open_store(matches)?.hold_batch(service, batch, reason)?)?;
    let consequence = match state {
        BatchState::Submitting => "the attempt that is under way is not stopped",
        state if state.awaits_queuer() => "it is not sent before it is released or decided",
        _ => "it is followed, and not sent again before it is released or decided",
    };
    print_stdout(format_args!("the batch is {state} and held: {consequence}"));
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn release(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let BatchKey { service, batch } = batch_key(matches)?;
    let state = applied(open_store(matches)?.release_batch(service, batch, reason(matches))?)?;
    print_stdout(format_args!("the batch is {state} and not held any more"));
    Ok(ExitCode::SUCCESS)
}

fn applied(outcome: ChangeOutcome) -> Result<BatchState, Failure> {
    match outcome {
        ChangeOutcome::Applied { state, .. } => Ok(state),
        ChangeOutcome::Stale(stale) => Err(Failure::new(format!("nothing changed: {stale}"))),
        ChangeOutcome::NotFound => Err(no_such_batch()),
    }
}
