//! `show`: everything that is stored about batches, or about a service.

use std::process::ExitCode;

use clap::Args;
use grid_batch_client::ClientError;
use grid_batch_core::queries::ItemIdPrefix;
use serde_json::Value;

use crate::commands::{
    arguments::ReadArgs,
    explain::explain_service,
    failure::Failure,
    operator::{BatchesArgs, NamedBatches, Word},
    remote::{
        Server, entries, field, gas_text, joined, position, print_each, print_line, print_time,
        state_text,
    },
};

/// Shows what is stored about batches: their state, why they wait, and their attempts
///
/// If only a service or a gas admin is named, shows the service. Needs only read permission.
#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    #[command(flatten)]
    batches: BatchesArgs,
    #[command(flatten)]
    read: ReadArgs,
}

pub(crate) fn run(args: &ShowArgs) -> Result<ExitCode, Failure> {
    let server = Server::to_read(&args.read.source)?;
    if let [Word::Service(service)] = &args.batches.batch[..]
        && let Some(explained) = explain_service(&server, service)?
    {
        return Ok(args.read.output.show(&explained, || print_service(&explained)));
    }
    let NamedBatches { service, names } = NamedBatches::of(&args.batches, None)?;
    let service = service.map(|service| service.to_string());
    let mut batches: Vec<Value> = Vec::new();
    for name in &names {
        let batch = read(&server, &name.prefix, service.as_deref());
        let batch = batch.map_err(|error| Failure::from(error).at(&server.place()))?;
        let is_other = |shown: &Value| shown["link"] != batch["link"];
        if batches.iter().all(is_other) {
            batches.push(batch);
        }
    }
    Ok(args.read.output.show_list("batches", &batches, || {
        print_line("database", server.database.as_deref().unwrap_or_default());
        print_each(&batches, print);
    }))
}

/// A batch with its explanation: why it waits, what is before and behind it, and what can be done.
fn read(server: &Server, id: &ItemIdPrefix, service: Option<&str>) -> Result<Value, ClientError> {
    let mut batch = server.client.batch(id, service)?;
    let explanation = server.client.explain_batch(id, service)?;
    let (ahead, behind) = position(&explanation);
    batch["explanation"] = explanation["text"].clone();
    batch["actions"] = explanation["actions"].clone();
    batch["ahead"] = ahead.into();
    batch["behind"] = behind.into();
    batch["owner"] = explanation["service"]["owner"].clone();
    Ok(batch)
}

/// What is open in a service, and why it waits.
fn print_service(explained: &Value) {
    let service = &explained["service"];
    for (name, label) in [
        ("service_id", "service"),
        ("open", "open"),
        ("under_way", "under way"),
        ("held", "held"),
        ("parked", "parked"),
        ("failing", "failing"),
    ] {
        print_line(label, &field(service, name));
    }
    print_time("oldest", service, "oldest_stored_at");
    if explained["gas"].is_object() {
        print_line("gas", &gas_text(&explained["gas"]));
    }
    print_line("why", &field(explained, "text"));
}

fn print(batch: &Value) {
    print_line("service", &field(batch, "service_id"));
    let id = field(batch, "id");
    let (first, second) = id.split_at_checked(id.len() / 2).unwrap_or((&id, ""));
    print_line("batch", &format!("{first} {second}"));
    print_line("state", &state_text(batch));
    print_line("attempt", &field(batch, "attempts"));
    for (name, label) in [
        ("since", "since"),
        ("stored_at", "stored"),
        ("submitted_at", "submitted"),
        ("checked_at", "asked"),
        ("ended_at", "ended"),
    ] {
        print_time(label, batch, name);
    }
    print_line("next try", &field(batch, "next_try_at"));
    print_line("deadline", &deadline(&batch["deadline"]));
    print_line("label", &field(batch, "label"));
    print_time("held", &batch["held"], "since");
    print_line("reason", &field(&batch["held"], "reason"));
    print_line("error", &field(batch, "last_error"));
    print_line("why", &field(batch, "explanation"));
    if batch["wait"].is_object() {
        print_line("waits for", &field(&batch["wait"], "text"));
        let more = if batch["wait"]["behind"]["more_ahead"] == true { "more than " } else { "" };
        let (ahead, behind) = (field(batch, "ahead"), field(batch, "behind"));
        print_line("position", &format!("{more}{ahead} before it, {behind} behind it"));
        let owner = batch["owner"]["instance_id"].as_str();
        print_line("owner", owner.unwrap_or("no instance claims the service"));
    }
    for event in entries(batch, "history") {
        print_line(&field(event, "at"), &joined(event, &["kind", "state", "detail"], ", "));
    }
    for attempt in entries(batch, "failed_attempts") {
        let result = joined(attempt, &["outcome", "error"], ": ");
        let text = format!("{} {result}", field(attempt, "ended_at"));
        print_line(&format!("attempt {}", field(attempt, "attempt")), &text);
    }
    for action in entries(batch, "operator_actions") {
        let (verb, actor) = (field(action, "verb"), field(action, "actor"));
        let text = format!("{verb} by {actor}: {}", field(action, "reason"));
        print_line(&field(action, "acted_at"), &text);
    }
    for receipt in entries(batch, "receipts") {
        print_line("invalid", &field(receipt, "message"));
    }
    let late = &batch["commit_after_invalid"];
    if late.is_object() {
        let (at, source) = (field(late, "reported_at"), field(late, "source"));
        print_line("committed", &format!("{at} reported after it was invalid, by {source}"));
    }
    for action in entries(batch, "actions") {
        let (verb, id) = (field(action, "verb"), field(action, "batch_id"));
        print_line("possible", &format!("{verb} {id:.12}: {}", field(action, "text")));
    }
}

/// A time or a height of the ledger; empty if there is none.
fn deadline(deadline: &Value) -> String {
    match deadline["height"].as_u64() {
        Some(height) => format!("height {height}"),
        None => field(deadline, "time"),
    }
}
