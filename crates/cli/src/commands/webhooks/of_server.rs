//! The webhooks of a running server.

use std::process::ExitCode;

use clap::ArgMatches;
use grid_batch_core::{EventKind, ServiceId, check_webhook_url};
use serde_json::{Value, json};

use super::webhook_id;
use crate::commands::{
    failure::Failure,
    operator::{print_json, print_wrapped, wants_json},
    print::print_stdout,
    remote::{Server, age, field},
};

pub(super) fn run(command: &str, matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let server = Server::of(matches)?;
    match command {
        "list" => list(&server, matches),
        "create" => create(&server, matches),
        "remove" => remove(&server, matches),
        "failed" => failed(&server, matches),
        _ => redeliver(&server, matches),
    }?;
    Ok(ExitCode::SUCCESS)
}

fn list(server: &Server, matches: &ArgMatches) -> Result<(), Failure> {
    let answer = server.client.get("/v1/webhooks", &[])?;
    let webhooks = answer["data"].as_array().map_or(&[][..], Vec::as_slice);
    if wants_json(matches) {
        print_json(&json!({ "webhooks": webhooks }));
        return Ok(());
    }
    for webhook in webhooks {
        print_stdout(format_args!("{} {}", field(webhook, "id"), field(webhook, "url")));
        print_wrapped("    ", &progress(webhook));
        if let Some(error) = webhook["last_error"].as_str() {
            print_wrapped("    ", error);
        }
    }
    print_stdout(format_args!("webhooks: {}", webhooks.len()));
    Ok(())
}

/// How the delivery goes, in words.
fn progress(webhook: &Value) -> String {
    let mut facts = Vec::new();
    if !webhook["disabled_at"].is_null() {
        let ago = age(webhook, "disabled_at");
        facts.push(format!("disabled {ago} ago, until `webhooks redeliver`"));
    }
    if let Some(at) = webhook["next_try_at"].as_str() {
        let attempt = webhook["attempts"].as_u64().unwrap_or(0) + 1;
        facts.push(format!("attempt {attempt} at {at}"));
    }
    if webhook["failed"].as_u64().unwrap_or(0) > 0 {
        facts.push(format!("{} messages were given up", field(webhook, "failed")));
    }
    if !webhook["missed_at"].is_null() {
        let ago = age(webhook, "missed_at");
        facts.push(format!("events were removed before they were delivered, {ago} ago"));
    }
    if facts.is_empty() { "delivers".to_owned() } else { facts.join("; ") }
}

fn create(server: &Server, matches: &ArgMatches) -> Result<(), Failure> {
    let url = matches.get_one::<String>("address").cloned().unwrap_or_default();
    check_webhook_url(&url)?;
    let mut fields = json!({ "url": url });
    let services = matches.get_many::<ServiceId>("service").into_iter().flatten();
    let services: Vec<_> = services.map(ToString::to_string).collect();
    if !services.is_empty() {
        fields["services"] = services.into();
    }
    let kinds = matches.get_many::<EventKind>("kind").into_iter().flatten();
    let kinds: Vec<_> = kinds.map(ToString::to_string).collect();
    if !kinds.is_empty() {
        fields["kinds"] = kinds.into();
    }
    let created = server.client.post("/v1/webhooks", &[], &fields)?;
    if wants_json(matches) {
        print_json(&created);
        return Ok(());
    }
    print_stdout(format_args!("webhook {} is created", field(&created, "id")));
    print_stdout(format_args!("secret {}", field(&created, "secret")));
    Ok(())
}

fn remove(server: &Server, matches: &ArgMatches) -> Result<(), Failure> {
    let id = webhook_id(matches);
    server.client.delete(&format!("/v1/webhooks/{id}"))?;
    print_stdout(format_args!("webhook {id} is removed"));
    Ok(())
}

fn failed(server: &Server, matches: &ArgMatches) -> Result<(), Failure> {
    let path = format!("/v1/webhooks/{}/failed", webhook_id(matches));
    let (failed, _) = server.read_list(&path, &[], usize::MAX)?;
    if wants_json(matches) {
        print_json(&json!({ "failed": failed }));
        return Ok(());
    }
    for message in &failed {
        let again = if message["again"] == true { ", to be sent once more" } else { "" };
        print_stdout(format_args!(
            "{} {}: given up {} ago, after {} attempts{again}",
            field(message, "id"),
            field(message, "message_id"),
            age(message, "failed_at"),
            field(message, "attempts"),
        ));
        print_wrapped("    ", &field(message, "error"));
    }
    print_stdout(format_args!("messages that were given up: {}", failed.len()));
    Ok(())
}

fn redeliver(server: &Server, matches: &ArgMatches) -> Result<(), Failure> {
    let path = format!("/v1/webhooks/{}/redeliver", webhook_id(matches));
    let failed = matches.get_one::<i64>("failed").map(ToString::to_string);
    let failed = failed.as_deref().map(|failed| ("failed", failed));
    let sent = server.client.post(&path, &Vec::from_iter(failed), &json!({}))?;
    print_stdout(format_args!("messages that are sent once more: {}", field(&sent, "messages")));
    Ok(())
}
