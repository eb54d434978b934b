//! `show` for batches of a running server.

use std::process::ExitCode;

use clap::ArgMatches;
use serde_json::{Value, json};

use crate::commands::{
    failure::Failure,
    operator::{NamedBatches, print_json, print_wrapped, wants_json},
    print::print_stdout,
    remote::{self, Server, age, field},
};

pub(super) fn run(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let server = Server::of(matches)?;
    let NamedBatches { service, names } = NamedBatches::of(matches)?;
    let service = remote::service_of(service.as_ref())?;
    let mut batches = Vec::new();
    for name in &names {
        let mut batch = server.client.batch(&name.prefix, None, service)?;
        let explanation = server.client.batch(&name.prefix, Some("explain"), service)?;
        batch["explanation"] = explanation["text"].clone();
        batch["actions"] = explanation["actions"].clone();
        batches.push(batch);
    }
    if wants_json(matches) {
        print_json(&json!({ "batches": batches }));
        return Ok(ExitCode::SUCCESS);
    }
    for (number, batch) in batches.iter().enumerate() {
        if number > 0 {
            print_stdout("");
        }
        print(batch);
    }
    Ok(ExitCode::SUCCESS)
}

fn print(batch: &Value) {
    line("service", &field(batch, "service_id"));
    let id = field(batch, "id");
    let (first, second) = id.split_at_checked(id.len() / 2).unwrap_or((&id, ""));
    line("batch", &format!("{first} {second}"));
    line("state", &field(batch, "state"));
    line("attempt", &field(batch, "attempts"));
    for (name, label) in [
        ("since", "since"),
        ("stored_at", "stored"),
        ("submitted_at", "submitted"),
        ("checked_at", "asked"),
        ("ended_at", "ended"),
    ] {
        time(label, batch, name);
    }
    line("next try", &field(batch, "next_try_at"));
    line("label", &field(batch, "label"));
    time("held", &batch["held"], "since");
    line("reason", &field(&batch["held"], "reason"));
    line("error", &field(batch, "last_error"));
    line("why", &field(batch, "explanation"));
    list(batch, "history").iter().for_each(|event| line(&field(event, "at"), &event_text(event)));
    list(batch, "operator_actions").iter().for_each(|action| {
        let text = format!(
            "{} by {}: {}",
            field(action, "verb"),
            field(action, "actor"),
            field(action, "reason")
        );
        line(&field(action, "acted_at"), &text);
    });
    list(batch, "receipts").iter().for_each(|receipt| line("invalid", &field(receipt, "message")));
    list(batch, "actions").iter().for_each(|action| {
        let id = field(action, "batch_id");
        line("possible", &format!("{} {id:.12}: {}", field(action, "verb"), field(action, "text")));
    });
}

fn event_text(event: &Value) -> String {
    let parts = [field(event, "kind"), field(event, "state"), field(event, "detail")];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ")
}

fn list<'a>(batch: &'a Value, name: &str) -> &'a [Value] {
    batch[name].as_array().map_or(&[][..], Vec::as_slice)
}

fn time(label: &str, value: &Value, name: &str) {
    let at = field(value, name);
    if !at.is_empty() {
        line(label, &format!("{at} ({} ago)", age(value, name)));
    }
}

/// Prints a value, if there is one.
fn line(label: &str, value: &str) {
    if !value.is_empty() {
        print_wrapped(&format!("{label:<10} "), value);
    }
}
