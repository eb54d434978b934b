//! `webhooks`: webhooks, and messages that could not be delivered.

use std::process::ExitCode;

use clap::{Arg, ArgAction, ArgMatches, Command, builder::ValueParser, value_parser};
use grid_batch_core::ServiceId;
use grid_batch_core::events::EventKind;
use grid_batch_core::webhooks::{WebhookId, check_webhook_url};
use serde_json::{Value, json};

use crate::commands::{
    failure::Failure,
    operator::{
        dry_run_flag, is_dry_run, json_flag, print_json, print_wrapped, reason, reason_flag,
        wants_json,
    },
    print::print_stdout,
    remote::{self, Server, age, field, time_until},
};

pub(crate) fn command() -> Command {
    Command::new("webhooks")
        .visible_alias("webhook")
        .about("Lists, creates and removes webhooks, and sends failed messages again")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(
            Command::new("list")
                .about("Lists the webhooks and the state of their delivery; with --database, needs only read permission")
                .arg(json_flag())
                .args(remote::flags_of_both()),
        )
        .subcommand(create_command())
        .subcommand(
            Command::new("remove")
                .about("Removes a webhook, with the messages that failed")
                .arg(id_argument())
                .arg(reason_flag())
                .arg(dry_run_flag())
                .args(remote::flags_of_both()),
        )
        .subcommand(
            Command::new("failed")
                .about("Lists the messages that were given up; with --database, needs only read permission")
                .arg(id_argument())
                .arg(json_flag())
                .args(remote::flags_of_both()),
        )
        .subcommand(
            Command::new("redeliver")
                .about("Sends messages again that were given up, and enables the webhook")
                .long_about(
                    "Sends messages again that were given up, all or one. An event that waits is tried at once, \
                     and a webhook whose receiver answered with 410 is enabled. The running server sends them.",
                )
                .arg(id_argument())
                .arg(
                    Arg::new("failed")
                        .long("failed")
                        .value_name("ID")
                        .value_parser(value_parser!(i64))
                        .help("Only this message, by the id that `webhooks failed` prints"),
                )
                .arg(reason_flag())
                .arg(dry_run_flag())
                .args(remote::flags_of_both()),
        )
}

fn create_command() -> Command {
    Command::new("create")
        .about("Creates a webhook, and prints its secret, which is not shown again")
        .arg(Arg::new("address").value_name("URL").required(true).help("Where the events are sent"))
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
        .args(remote::action_flags())
}

fn id_argument() -> Arg {
    Arg::new("id").required(true).value_parser(value_parser!(i64)).help("Id of the webhook")
}

pub(crate) fn run(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let Some((command, matches)) = matches.subcommand() else {
        return Err(Failure::new("there is no such command; see grid-batch webhooks --help"));
    };
    let server = match command {
        "list" | "failed" => Server::to_read(matches),
        _ => Server::to_act(matches),
    }?;
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
    print_stdout(format_args!("{} webhooks{}", webhooks.len(), server.place()));
    Ok(())
}

/// The state of the delivery, in words.
fn progress(webhook: &Value) -> String {
    let mut facts = Vec::new();
    if !webhook["disabled_at"].is_null() {
        let ago = age(webhook, "disabled_at");
        facts.push(format!("disabled {ago} ago, until `webhooks redeliver`"));
    }
    if !webhook["next_try_at"].is_null() {
        let attempt = webhook["attempts"].as_u64().unwrap_or(0) + 1;
        facts.push(format!("attempt {attempt} {}", time_until(webhook, "next_try_at")));
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
    let created = server.act(matches, "/v1/webhooks", &[], fields)?;
    if wants_json(matches) {
        print_json(&created);
        return Ok(());
    }
    if is_dry_run(matches) {
        print_stdout(format_args!("nothing changed: a webhook for {url} would be created"));
        return Ok(());
    }
    print_stdout(format_args!("webhook {} is created", field(&created, "id")));
    print_stdout(format_args!("secret {}", field(&created, "secret")));
    Ok(())
}

fn remove(server: &Server, matches: &ArgMatches) -> Result<(), Failure> {
    let id = webhook_id(matches);
    let dry_run = is_dry_run(matches).to_string();
    let parameters = [("reason", reason(matches)), ("dry_run", &dry_run)];
    server.client.delete(&format!("/v1/webhooks/{id}"), &parameters)?;
    if is_dry_run(matches) {
        print_stdout(format_args!("nothing changed: webhook {id} would be removed"));
    } else {
        print_stdout(format_args!("webhook {id} is removed"));
    }
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
    print_stdout(format_args!("{} messages were given up", failed.len()));
    Ok(())
}

fn redeliver(server: &Server, matches: &ArgMatches) -> Result<(), Failure> {
    let path = format!("/v1/webhooks/{}/redeliver", webhook_id(matches));
    let failed = matches.get_one::<i64>("failed").map(ToString::to_string);
    let failed = failed.as_deref().map(|failed| ("failed", failed));
    let sent = server.act(matches, &path, &Vec::from_iter(failed), json!({}))?;
    let would = if is_dry_run(matches) { "nothing changed; without --dry-run: " } else { "" };
    let messages = field(&sent, "messages");
    print_stdout(format_args!("{would}messages that are sent once more: {messages}"));
    Ok(())
}

fn webhook_id(matches: &ArgMatches) -> WebhookId {
    WebhookId(matches.get_one::<i64>("id").copied().unwrap_or_default())
}
