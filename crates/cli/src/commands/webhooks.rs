//! `webhooks`: where events are delivered, and what could not be.

use std::{collections::BTreeSet, process::ExitCode};

use clap::{Arg, ArgAction, ArgMatches, Command, builder::ValueParser, value_parser};
use grid_batch_core::{
    EventFilter, EventKind, FailedDelivery, FailedDeliveryId, NewWebhook, ServiceId, Timestamp,
    Webhook, WebhookId, WebhookStore, check_webhook_url,
};
use grid_batch_service::new_webhook_secret;
use serde_json::{Value, json};

use crate::commands::{
    failure::Failure,
    flags,
    operator::{
        Database, ago, in_future, json_flag, print_json, print_wrapped, rfc3339, wants_json,
    },
    print::print_stdout,
};

pub(crate) fn command() -> Command {
    Command::new("webhooks")
        .visible_alias("webhook")
        .about("Lists, creates and removes webhooks, and sends messages once more that failed")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(
            Command::new("list")
                .about("Lists the webhooks and how their delivery goes; needs only the right to read")
                .arg(json_flag())
                .args(flags::of_database()),
        )
        .subcommand(create_command())
        .subcommand(
            Command::new("remove")
                .about("Removes a webhook, with the messages that failed")
                .arg(id_argument())
                .args(flags::of_database()),
        )
        .subcommand(
            Command::new("failed")
                .about("Lists the messages that were given up; needs only the right to read")
                .arg(id_argument())
                .arg(json_flag())
                .args(flags::of_database()),
        )
        .subcommand(
            Command::new("redeliver")
                .about("Sends messages that were given up once more, and enables the webhook")
                .long_about(
                    "Sends the messages once more that were given up, all or one. An event that waits is tried \
                     at once, and a webhook is enabled whose receiver answered with 410. The running server \
                     does it.",
                )
                .arg(id_argument())
                .arg(
                    Arg::new("failed")
                        .long("failed")
                        .value_name("ID")
                        .value_parser(value_parser!(i64))
                        .help("Only this message, by the id that `webhooks failed` prints"),
                )
                .args(flags::of_database()),
        )
}

fn create_command() -> Command {
    Command::new("create")
        .about("Creates a webhook, and prints its secret, which is not shown again")
        .arg(Arg::new("url").required(true).help("Where the events are sent"))
        .arg(
            Arg::new("service")
                .long("service")
                .value_name("ID")
                .action(ArgAction::Append)
                .value_parser(value_parser!(ServiceId))
                .help("Only events of this service; may be given several times"),
        )
        .arg(
            Arg::new("kind")
                .long("kind")
                .action(ArgAction::Append)
                .value_parser(ValueParser::new(str::parse::<EventKind>))
                .help("Only events of this kind; may be given several times"),
        )
        .arg(json_flag())
        .args(flags::of_database())
}

fn id_argument() -> Arg {
    Arg::new("id").required(true).value_parser(value_parser!(i64)).help("Id of the webhook")
}

pub(crate) fn run(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    match matches.subcommand() {
        Some(("list", matches)) => list(matches),
        Some(("create", matches)) => create(matches),
        Some(("remove", matches)) => remove(matches),
        Some(("failed", matches)) => failed(matches),
        Some(("redeliver", matches)) => redeliver(matches),
        _ => Err(Failure::new("there is no such command; see grid-batch webhooks --help")),
    }
}

fn list(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let database = Database::to_read(matches)?;
    let webhooks = database.store.webhooks()?;
    if wants_json(matches) {
        print_json(&json!({
            "database": database.name(),
            "read_at": rfc3339(database.now()),
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
    let time = |time: Option<Timestamp>| time.map(rfc3339);
    json!({
        "id": webhook.id.to_string(),
        "url": webhook.url,
        "services": webhook.filter.services.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "kinds": webhook.filter.kinds.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "created_at": rfc3339(webhook.created_at),
        "attempts": webhook.attempts,
        "next_try_at": time(webhook.next_try_at),
        "last_error": webhook.last_error,
        "disabled_at": time(webhook.disabled_at),
        "missed_at": time(webhook.missed_at),
        "failed": webhook.failed,
    })
}

fn create(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let url = matches.get_one::<String>("url").cloned().unwrap_or_default();
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
            "read_at": rfc3339(database.now()),
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
        "failed_at": rfc3339(failed.failed_at),
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

fn webhook_id(matches: &ArgMatches) -> WebhookId {
    WebhookId(matches.get_one::<i64>("id").copied().unwrap_or_default())
}

fn unknown(id: WebhookId, database: &Database) -> Failure {
    Failure::new(format!("there is no webhook {id} in {}", database.name()))
}
