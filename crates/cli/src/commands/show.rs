//! `show`: everything that is stored about batches.

use std::process::ExitCode;

use clap::{ArgMatches, Command};
use grid_batch_core::{
    BatchDetails, BatchExplanation, BatchQueryStore, FailedAttempt, ServiceFacts, ServiceOverview,
    StoredBatch, Timestamp,
};
use serde_json::json;

use crate::commands::{
    failure::Failure,
    operator::{
        Database, action_json, ago, batch_arguments, details_json, find_targets, in_future,
        json_flag, print_json, print_wrapped, wants_json,
    },
    remote::{self, Source},
    show_of_server,
};

pub(crate) fn command() -> Command {
    Command::new("show")
        .about("Shows what is stored about batches: their state, why they wait, and their attempts")
        .long_about(
            "Shows what is stored about batches: their state, why they wait, and their attempts. At a \
             server, a service without a batch, such as the name of a gas admin, shows the service. Needs only the \
             right to read.",
        )
        .args(batch_arguments())
        .arg(json_flag())
        .args(remote::flags_of_both())
}

pub(crate) fn run(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    match Source::of(matches) {
        Source::Server => show_of_server::run(matches),
        Source::Database => show_of_database(matches),
    }
}

fn show_of_database(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let database = Database::to_read(matches)?;
    let mut shown = Vec::new();
    for target in find_targets(&database, matches)? {
        let StoredBatch { service_id, batch_id, .. } = &target.batch;
        // Retention may have removed it since it was found.
        if let Some(details) = database.store.details(service_id, batch_id)? {
            let behind = count_behind(&database, &details)?;
            let service = BatchQueryStore::service(&database.store, service_id)?;
            shown.push((details, behind, service));
        }
    }
    if wants_json(matches) {
        let now = database.now();
        let batches = shown.iter().map(|(details, behind, service)| {
            let mut document = details_json(details, *behind);
            let explanation = explain(details, service.as_ref(), now);
            document["deadline"] = details.deadline.map(|it| it.to_string()).into();
            document["label"] = details.label.as_ref().map(ToString::to_string).into();
            document["explanation"] = explanation.to_string().into();
            document["actions"] = explanation.actions().iter().map(action_json).collect();
            document
        });
        print_json(&json!({
            "database": database.name(),
            "read_at": database.now().rfc3339(),
            "batches": batches.collect::<Vec<_>>(),
        }));
        return Ok(ExitCode::SUCCESS);
    }
    print_line("database", &database.name());
    for (details, behind, service) in &shown {
        print_details(details, *behind, database.now());
        print_actions(details, service.as_ref(), database.now());
    }
    Ok(ExitCode::SUCCESS)
}

fn explain<'a>(
    details: &'a BatchDetails,
    service: Option<&'a ServiceOverview>,
    now: Timestamp,
) -> BatchExplanation<'a> {
    let facts =
        service.map(|service| ServiceFacts { service, pause: None, waits: &[], search: None, now });
    BatchExplanation::new(details, facts)
}

/// Who works on the service of an open batch, and what an operator can do.
fn print_actions(details: &BatchDetails, service: Option<&ServiceOverview>, now: Timestamp) {
    if details.batch.progress.state.is_terminal() {
        return;
    }
    match service.and_then(|service| service.owner.as_ref()) {
        Some(owner) => {
            let lease = ("lease", owner.instance.lease_ends_at);
            let end = if lease.1 > now { in_future(lease.1, now) } else { ago(lease.1, now) };
            let text = format!("{}, {} ends {end}", owner.instance.instance_id, lease.0);
            print_line("owner", &text);
        }
        None => print_line("owner", "no instance claims the service"),
    }
    for possible in explain(details, service, now).actions() {
        let (verb, text) = (possible.verb.as_str(), possible.verb.description());
        let of = possible.batch.map(|batch| format!("{:.12}", batch.batch_id));
        print_line("possible", &format!("{verb} {}: {text}", of.unwrap_or_default()));
    }
}

/// How many batches of its service come after an open batch.
fn count_behind(database: &Database, details: &BatchDetails) -> Result<u64, Failure> {
    if details.batch.progress.state.is_terminal() {
        return Ok(0);
    }
    let open = database.store.depth(&details.batch.service_id)?;
    Ok(open.saturating_sub(count_ahead(details) + 1))
}

fn count_ahead(details: &BatchDetails) -> u64 {
    details.ahead.as_ref().map_or(0, |ahead| ahead.count)
}

fn print_details(details: &BatchDetails, behind: u64, now: Timestamp) {
    print_batch(&details.batch, now);
    if let Some(deadline) = details.deadline {
        print_line("deadline", &format!("{deadline:#}"));
    }
    if let Some(label) = &details.label {
        print_line("label", label.as_str());
    }
    if let Some(wait) = details.wait() {
        print_line("waits for", &wait.to_string());
        let ahead = count_ahead(details);
        let more = details.ahead.as_ref().is_some_and(|ahead| ahead.more);
        let more = if more { "more than " } else { "" };
        print_line("position", &format!("{more}{ahead} before it, {behind} behind it"));
    }
    print_attempts(details, now);
}

fn print_batch(batch: &StoredBatch, now: Timestamp) {
    let StoredBatch { service_id, batch_id, progress, .. } = batch;
    print_line("service", service_id.as_str());
    let id = batch_id.to_string();
    let (first, second) = id.split_at(id.len() / 2);
    print_line("batch", &format!("{first} {second}"));
    print_line("state", &progress.state.to_string());
    print_line("attempt", &progress.attempts.to_string());
    print_time("since", batch.since, now);
    print_time("stored", Some(batch.created_at), now);
    print_time("submitted", batch.submitted_at, now);
    print_time("asked", batch.checked_at, now);
    if let Some(at) = batch.next_try_at {
        print_line("next try", &format!("{} ({})", at.rfc3339(), in_future(at, now)));
    }
    if progress.earlier_may_arrive {
        print_line("note", "an earlier attempt may still arrive at the ledger");
    }
    if let Some(hold) = &batch.held {
        print_time("held", Some(hold.since), now);
        print_line("reason", &hold.reason);
    }
    if let Some(error) = &batch.last_error {
        print_line("error", error);
    }
}

/// The failed attempts with what operators did, and why the batch is invalid.
fn print_attempts(details: &BatchDetails, now: Timestamp) {
    for attempt in &details.failed_attempts {
        let FailedAttempt { attempt: number, ended_at, outcome, error, .. } = attempt;
        let error = error.as_ref().map(|error| format!(": {error}")).unwrap_or_default();
        let text = format!("{} ({}) {outcome}{error}", ended_at.rfc3339(), ago(*ended_at, now));
        print_line(&format!("attempt {number}"), &text);
    }
    for receipt in &details.receipts {
        print_line("invalid", &receipt.error_message);
    }
    if let Some(report) = &details.commit_after_invalid {
        let (at, source) = (report.reported_at.rfc3339(), &report.source);
        print_line("committed", &format!("{at} reported after it was invalid, by {source}"));
    }
}

fn print_time(name: &str, time: Option<Timestamp>, now: Timestamp) {
    if let Some(time) = time {
        print_line(name, &format!("{} ({})", time.rfc3339(), ago(time, now)));
    }
}

fn print_line(name: &str, value: &str) {
    print_wrapped(&format!("{name:<10} "), value);
}
