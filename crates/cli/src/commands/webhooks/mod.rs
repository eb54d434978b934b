//! `webhooks`: webhooks, and messages that could not be delivered.

mod change;

use std::process::ExitCode;

use clap::{Args, Subcommand};
use grid_batch_client::given;
use grid_batch_core::ServiceId;
use grid_batch_core::events::EventKind;
use serde_json::{Value, json};

use self::change::{ChangeArgs, OneArgs, PingArgs, RotateArgs};
use crate::commands::{
    arguments::{ActionArgs, Asked, ReadArgs, SourceArgs},
    failure::Failure,
    operator::print_wrapped,
    print::print_stdout,
    remote::{Server, age, entries, field, time_until},
};

/// Lists, creates, changes and removes webhooks, and sends failed messages again
#[derive(Debug, Subcommand)]
pub(crate) enum WebhookCommand {
    /// Lists the webhooks and the state of their delivery; with --database, needs only read permission
    List(ReadArgs),
    /// Creates a webhook, and prints its secret, which is not shown again
    Create(CreateArgs),
    /// Changes where a webhook sends, or which events
    Change(ChangeArgs),
    /// Gives a webhook another secret, and prints it
    Rotate(RotateArgs),
    /// Sends nothing to a webhook until it is resumed; its events wait
    Pause(OneArgs),
    /// Ends the pause of a webhook
    Resume(OneArgs),
    /// Has the running server send a message that tests a webhook, and waits for the receiver's answer
    Ping(PingArgs),
    /// Removes a webhook, with the messages that failed
    Remove(RemoveArgs),
    /// Lists the messages that were given up; with --database, needs only read permission
    Failed(FailedArgs),
    /// Sends messages again that were given up, and enables the webhook
    ///
    /// Sends all or one. An event that waits is tried at once, and a webhook whose receiver answered with 410 is
    /// enabled. The running server sends them.
    Redeliver(RedeliverArgs),
}

#[derive(Debug, Args)]
pub(crate) struct CreateArgs {
    /// Where the events are sent
    #[arg(value_name = "URL")]
    address: String,
    /// Only events of this service; may be given several times
    #[arg(long, value_name = "ID")]
    service: Vec<ServiceId>,
    /// Only events of this kind; may be given several times
    #[arg(long)]
    kind: Vec<EventKind>,
    #[command(flatten)]
    action: ActionArgs,
}

#[derive(Debug, Args)]
pub(crate) struct RemoveArgs {
    /// Id of the webhook
    id: i64,
    #[command(flatten)]
    asked: Asked,
    #[command(flatten)]
    source: SourceArgs,
}

#[derive(Debug, Args)]
pub(crate) struct FailedArgs {
    /// Id of the webhook
    id: i64,
    #[command(flatten)]
    read: ReadArgs,
}

#[derive(Debug, Args)]
pub(crate) struct RedeliverArgs {
    /// Id of the webhook
    id: i64,
    /// Only this message, by the id that `webhooks failed` prints
    #[arg(long, value_name = "ID")]
    failed: Option<i64>,
    #[command(flatten)]
    asked: Asked,
    #[command(flatten)]
    source: SourceArgs,
}

pub(crate) fn run(command: &WebhookCommand) -> Result<ExitCode, Failure> {
    match command {
        WebhookCommand::List(args) => list(args),
        WebhookCommand::Create(args) => create(args),
        WebhookCommand::Change(args) => change::change(args),
        WebhookCommand::Rotate(args) => change::rotate(args),
        WebhookCommand::Pause(args) => change::set_paused(args, "pause", "is paused"),
        WebhookCommand::Resume(args) => change::set_paused(args, "resume", "is not paused"),
        WebhookCommand::Ping(args) => change::ping(args),
        WebhookCommand::Remove(args) => remove(args),
        WebhookCommand::Failed(args) => failed(args),
        WebhookCommand::Redeliver(args) => redeliver(args),
    }
}

fn list(args: &ReadArgs) -> Result<ExitCode, Failure> {
    let server = Server::to_read(&args.source)?;
    let answer = server.client.get("/v1/webhooks", &[])?;
    let webhooks = entries(&answer, "data");
    Ok(args.output.show_list("webhooks", webhooks, || {
        for webhook in webhooks {
            print_stdout(format_args!("{} {}", field(webhook, "id"), field(webhook, "url")));
            print_wrapped("    ", &progress(webhook));
            if let Some(error) = webhook["last_error"].as_str() {
                print_wrapped("    ", error);
            }
        }
        print_stdout(format_args!("{} webhooks{}", webhooks.len(), server.place()));
    }))
}

/// The state of the delivery, in words.
fn progress(webhook: &Value) -> String {
    let mut facts = Vec::new();
    if !webhook["paused_at"].is_null() {
        let ago = age(webhook, "paused_at");
        facts.push(format!("paused {ago} ago, until `webhooks resume`"));
    }
    if !webhook["disabled_at"].is_null() {
        let ago = age(webhook, "disabled_at");
        facts.push(format!("disabled {ago} ago, until `webhooks redeliver`"));
    }
    if !webhook["next_try_at"].is_null() {
        let attempt = webhook["attempts"].as_u64().unwrap_or(0) + 1;
        facts.push(format!("attempt {attempt} {}", time_until(webhook, "next_try_at")));
    }
    if webhook["waiting"].as_u64().unwrap_or(0) > 0 {
        let at_least = if webhook["more_waiting"] == true { "at least " } else { "" };
        facts.push(format!("events that wait: {at_least}{}", field(webhook, "waiting")));
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

fn create(CreateArgs { address, service, kind, action }: &CreateArgs) -> Result<ExitCode, Failure> {
    let ActionArgs { asked, output, source } = action;
    let mut fields = json!({ "url": address });
    add_list(&mut fields, "services", service, false);
    add_list(&mut fields, "kinds", kind, false);
    let created = Server::to_act(source)?.act(asked, "/v1/webhooks", &[], fields)?;
    Ok(output.show(&created, || {
        if asked.is_dry_run() {
            print_stdout(format_args!("nothing changed: a webhook for {address} would be created"));
        } else {
            print_stdout(format_args!("webhook {} is created", field(&created, "id")));
            print_stdout(format_args!("secret {}", field(&created, "secret")));
        }
    }))
}

/// Adds a list that is given, or an empty one, which stands for all.
fn add_list<T: ToString>(fields: &mut Value, name: &str, list: &[T], is_all: bool) {
    if is_all || !list.is_empty() {
        fields[name] = list.iter().map(ToString::to_string).collect();
    }
}

fn remove(RemoveArgs { id, asked, source }: &RemoveArgs) -> Result<ExitCode, Failure> {
    let dry_run = asked.is_dry_run().to_string();
    let parameters = [("reason", asked.reason.as_str()), ("dry_run", &dry_run)];
    Server::to_act(source)?.client.delete(&format!("/v1/webhooks/{id}"), &parameters)?;
    if asked.is_dry_run() {
        print_stdout(format_args!("nothing changed: webhook {id} would be removed"));
    } else {
        print_stdout(format_args!("webhook {id} is removed"));
    }
    Ok(ExitCode::SUCCESS)
}

fn failed(FailedArgs { id, read }: &FailedArgs) -> Result<ExitCode, Failure> {
    let server = Server::to_read(&read.source)?;
    let path = format!("/v1/webhooks/{id}/failed");
    let (failed, _) = server.read_list(&path, &[], usize::MAX)?;
    Ok(read.output.show_list("failed", &failed, || {
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
    }))
}

fn redeliver(args: &RedeliverArgs) -> Result<ExitCode, Failure> {
    let RedeliverArgs { id, failed, asked, source } = args;
    let path = format!("/v1/webhooks/{id}/redeliver");
    let failed = failed.map(|failed| failed.to_string());
    let failed = given([("failed", failed.as_deref())]);
    let sent = Server::to_act(source)?.act(asked, &path, &failed, json!({}))?;
    let messages = field(&sent, "messages");
    print_stdout(format_args!("{}messages that are sent once more: {messages}", asked.run.would()));
    Ok(ExitCode::SUCCESS)
}
