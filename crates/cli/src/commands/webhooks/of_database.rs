//! The webhooks of a database.

use std::{collections::BTreeSet, process::ExitCode};

use clap::ArgMatches;
use grid_batch_core::{
    EventFilter, EventKind, FailedDelivery, FailedDeliveryId, NewWebhook, ServiceId, Timestamp,
    Webhook, WebhookId, WebhookStore, check_webhook_url,
};
use grid_batch_service::new_webhook_secret;
use serde_json::{Value, json};

use super::webhook_id;
use crate::commands::{
    failure::Failure,
    operator::{Database, ago, in_future, print_json, print_wrapped, wants_json},
    print::print_stdout,
};

pub(super) fn run(command: &str, matches: &ArgMatches) -> Result<ExitCode, Failure> {
    match command {
        "list" => list(matches),
        "create" => create(matches),
        "remove" => remove(matches),
        "failed" => failed(matches),
        _ => redeliver(matches),
    }
}

fn list(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let database = Database::to_read(matches)?;
    let webhooks = database.store.webhooks()?;
    if wants_json(matches) {
        print_json(&json!({
            "database": database.name(),
            "read_at": database.now().rfc3339(),
            "webhooks": webhooks.iter().map(webhook_json).collect::<Vec<_>>(),
        }));
        return Ok(ExitCode::SUCCESS);
    }
    for webhook in &webhooks {
        print_stdout(format_args!("{} {}", webhook.id, webhook.url));
        print_wrapped("    ", &progress(webhook, database.now()));
        if let Some(error) = &webhook.last_error {
            print_wrapped("    ", error);
        }
    }
    print_stdout(format_args!("{} webhooks in {}", webhooks.len(), database.name()));
    Ok(ExitCode::SUCCESS)
}

/// How the delivery goes, in words.
fn progress(webhook: &Webhook, now: Timestamp) -> String {
    let mut facts = Vec::new();
    if let Some(at) = webhook.disabled_at {
        facts.push(format!("disabled {}, until `webhooks redeliver`", ago(at, now)));
    }
    if let Some(at) = webhook.next_try_at {
        facts.push(format!("attempt {} {}", webhook.attempts + 1, in_future(at, now)));
    }
    if webhook.failed > 0 {
        facts.push(format!("{} messages were given up", webhook.failed));
    }
    if let Some(at) = webhook.missed_at {
        facts.push(format!("events were removed before they were delivered, {}", ago(at, now)));
    }
    if facts.is_empty() { "delivers".to_owned() } else { facts.join("; ") }
}

fn webhook_json(webhook: &Webhook) -> Value {
    let time = |time: Option<Timestamp>| time.map(Timestamp::rfc3339);
    json!({
        "id": webhook.id.to_string(),
        "url": webhook.url,
        "services": webhook.filter.services.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "kinds": webhook.filter.kinds.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "created_at": webhook.created_at.rfc3339(),
        "attempts": webhook.attempts,
        "next_try_at": time(webhook.next_try_at),
        "last_error": webhook.last_error,
        "disabled_at": time(webhook.disabled_at),
        "missed_at": time(webhook.missed_at),
        "failed": webhook.failed,
    })
}

fn create(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let url = matches.get_one::<String>("address").cloned().unwrap_or_default();
    check_webhook_url(&url)?;
    let services: BTreeSet<ServiceId> = selected(matches, "service");
    let kinds: BTreeSet<EventKind> = selected(matches, "kind");
    let (secret, text) = new_webhook_secret()?;
    let new = NewWebhook { url, secret, filter: EventFilter { services, kinds } };
    let database = Database::to_write(matches)?;
    let created = database.store.create_webhook(&new)?;
    let webhook = created
        .ok_or_else(|| Failure::new("the maximum number of webhooks is reached; remove one"))?;
    if wants_json(matches) {
        let mut document = webhook_json(&webhook);
        document["database"] = database.name().into();
        document["secret"] = text.into();
        print_json(&document);
    } else {
        print_stdout(format_args!("webhook {} is created in {}", webhook.id, database.name()));
        print_stdout(format_args!("secret {text}"));
    }
    Ok(ExitCode::SUCCESS)
}

fn selected<T: Clone + Ord + Send + Sync + 'static>(
    matches: &ArgMatches,
    name: &str,
) -> BTreeSet<T> {
    matches.get_many::<T>(name).into_iter().flatten().cloned().collect()
}

fn remove(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let id = webhook_id(matches);
    let database = Database::to_write(matches)?;
    if !database.store.remove_webhook(id)? {
        return Err(unknown(id, &database));
    }
    print_stdout(format_args!("webhook {id} is removed from {}", database.name()));
    Ok(ExitCode::SUCCESS)
}

fn failed(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let id = webhook_id(matches);
    let database = Database::to_read(matches)?;
    let failed = read_failed(&database, id)?;
    if wants_json(matches) {
        print_json(&json!({
            "database": database.name(),
            "read_at": database.now().rfc3339(),
            "failed": failed.iter().map(failed_json).collect::<Vec<_>>(),
        }));
        return Ok(ExitCode::SUCCESS);
    }
    for failed in &failed {
        let again = if failed.again { ", to be sent once more" } else { "" };
        let when = ago(failed.failed_at, database.now());
        print_stdout(format_args!(
            "{} {}: given up {when}, after {} attempts{again}",
            failed.id, failed.message.id, failed.attempts
        ));
        print_wrapped("    ", &failed.error);
    }
    print_stdout(format_args!("{} messages were given up in {}", failed.len(), database.name()));
    Ok(ExitCode::SUCCESS)
}

fn read_failed(database: &Database, id: WebhookId) -> Result<Vec<FailedDelivery>, Failure> {
    const PAGE: usize = 500;
    let mut failed: Vec<FailedDelivery> = Vec::new();
    loop {
        let after = failed.last().map(|last| last.id);
        let page = database.store.failed_deliveries(id, after, PAGE)?;
        let page = page.ok_or_else(|| unknown(id, database))?;
        let is_last = page.len() < PAGE;
        failed.extend(page);
        if is_last {
            return Ok(failed);
        }
    }
}

fn failed_json(failed: &FailedDelivery) -> Value {
    json!({
        "id": failed.id.to_string(),
        "message_id": failed.message.id,
        "attempts": failed.attempts,
        "error": failed.error,
        "failed_at": failed.failed_at.rfc3339(),
        "again": failed.again,
        "body": serde_json::from_str::<Value>(&failed.message.body).unwrap_or_default(),
    })
}

fn redeliver(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let id = webhook_id(matches);
    let failed = matches.get_one::<i64>("failed").copied().map(FailedDeliveryId);
    let database = Database::to_write(matches)?;
    let changed = database.store.redeliver(id, failed)?;
    match (changed, failed) {
        (None, _) => Err(unknown(id, &database)),
        (Some(0), Some(failed)) => Err(Failure::new(format!(
            "webhook {id} has no message {failed} that was given up, in {}",
            database.name()
        ))),
        (Some(count), _) => {
            print_stdout(format_args!("{count} messages are sent once more by the server"));
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn unknown(id: WebhookId, database: &Database) -> Failure {
    Failure::new(format!("there is no webhook {id} in {}", database.name()))
}
