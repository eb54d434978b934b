//! `show`: everything that is stored about a batch.

use std::{
    fmt::Display,
    process::ExitCode,
    time::{Duration, UNIX_EPOCH},
};

use clap::{ArgMatches, Command};
use grid_batch_core::{BatchDetails, FailedAttempt, StoredBatch, Timestamp};
use humantime::format_rfc3339_seconds;

use crate::commands::{
    batch_key::{BatchKey, batch_key, no_such_batch, open_store},
    failure::Failure,
    flags,
    print::print_stdout,
};

pub(crate) fn command() -> Command {
    Command::new("show")
        .about("Shows what is stored about a batch: its state, why it waits, and its attempts")
        .args(BatchKey::arguments())
        .args(flags::settings())
}

pub(crate) fn run(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let BatchKey { service, batch } = batch_key(matches)?;
    let store = open_store(matches)?;
    let details = store.details(service, batch)?.ok_or_else(no_such_batch)?;
    print_batch(&details.batch);
    if !details.batch.progress.state.is_terminal() {
        let open = store.depth(service)?;
        let behind = open.saturating_sub(details.ahead + 1);
        print_line("position", format_args!("{} before it, {behind} behind it", details.ahead));
    }
    print_attempts(&details);
    Ok(ExitCode::SUCCESS)
}

fn print_batch(batch: &StoredBatch) {
    let StoredBatch { service_id, batch_id, progress, .. } = batch;
    print_line("service", service_id);
    print_line("batch", batch_id);
    print_line("state", progress.state);
    print_line("attempt", progress.attempts);
    print_time("since", batch.since);
    print_time("stored", Some(batch.created_at));
    print_time("submitted", batch.submitted_at);
    print_time("asked", batch.checked_at);
    print_time("next try", batch.next_try_at);
    if progress.earlier_may_arrive {
        print_line("note", "an earlier attempt may still arrive at the ledger");
    }
    if let Some(hold) = &batch.held {
        print_time("held", Some(hold.since));
        print_line("reason", &hold.reason);
    }
    if let Some(error) = &batch.last_error {
        print_line("error", error);
    }
}

/// The failed attempts with what operators did, and why the batch is invalid.
fn print_attempts(details: &BatchDetails) {
    for attempt in &details.failed_attempts {
        let FailedAttempt { attempt: number, ended_at, outcome, error, .. } = attempt;
        let error = error.as_ref().map(|error| format!(": {error}")).unwrap_or_default();
        print_line(
            &format!("attempt {number}"),
            format_args!("{} {outcome}{error}", text(*ended_at)),
        );
    }
    for receipt in &details.receipts {
        print_line("invalid", &receipt.error_message);
    }
    if let Some(report) = &details.commit_after_invalid {
        let (at, source) = (text(report.reported_at), &report.source);
        print_line("committed", format_args!("{at} reported after it was invalid, by {source}"));
    }
}

fn print_time(name: &str, time: Option<Timestamp>) {
    if let Some(time) = time {
        print_line(name, text(time));
    }
}

fn print_line(name: &str, value: impl Display) {
    print_stdout(format_args!("{name:<10} {value}"));
}

fn text(time: Timestamp) -> String {
    // RFC 3339 has no times before 1970 or after the year 9999.
    const LATEST: u64 = 253_402_300_799;
    let seconds = u64::try_from(time.as_micros() / 1_000_000).unwrap_or(0).min(LATEST);
    format_rfc3339_seconds(UNIX_EPOCH + Duration::from_secs(seconds)).to_string()
}
