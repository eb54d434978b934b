//! Changes of a webhook, and a message that tests it.

use std::{
    process::ExitCode,
    thread,
    time::{Duration, Instant},
};

use clap::Args;
use grid_batch_client::given;
use grid_batch_core::ServiceId;
use grid_batch_core::events::EventKind;
use serde_json::{Value, json};

use super::add_list;
use crate::commands::{
    arguments::{ActionArgs, Asked, SourceArgs, parse_duration},
    failure::Failure,
    print::print_stdout,
    remote::{Server, field},
};

#[derive(Debug, Args)]
pub(crate) struct ChangeArgs {
    /// Id of the webhook
    id: i64,
    /// Where the events are sent
    #[arg(long, value_name = "URL")]
    to: Option<String>,
    /// Only events of this service; may be given several times
    #[arg(long, value_name = "ID", conflicts_with = "all_services")]
    service: Vec<ServiceId>,
    /// Events of all services
    #[arg(long)]
    all_services: bool,
    /// Only events of this kind; may be given several times
    #[arg(long, conflicts_with = "all_kinds")]
    kind: Vec<EventKind>,
    /// Events of all kinds
    #[arg(long)]
    all_kinds: bool,
    #[command(flatten)]
    action: ActionArgs,
}

#[derive(Debug, Args)]
pub(crate) struct RotateArgs {
    /// Id of the webhook
    id: i64,
    /// How long requests are also signed with the secret before
    #[arg(long, value_name = "TIME", default_value = "1day", value_parser = parse_duration)]
    keep: Duration,
    #[command(flatten)]
    action: ActionArgs,
}

#[derive(Debug, Args)]
pub(crate) struct OneArgs {
    /// Id of the webhook
    id: i64,
    #[command(flatten)]
    action: ActionArgs,
}

#[derive(Debug, Args)]
pub(crate) struct PingArgs {
    /// Id of the webhook
    id: i64,
    /// How long to wait for the answer
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = parse_duration)]
    timeout: Duration,
    #[command(flatten)]
    asked: Asked,
    #[command(flatten)]
    source: SourceArgs,
}

pub(super) fn change(args: &ChangeArgs) -> Result<ExitCode, Failure> {
    let ChangeArgs { id, to, service, all_services, kind, all_kinds, action } = args;
    let mut fields = json!({});
    if let Some(url) = to {
        fields["url"] = url.as_str().into();
    }
    add_list(&mut fields, "services", service, *all_services);
    add_list(&mut fields, "kinds", kind, *all_kinds);
    let changed = act(action, *id, "change", fields)?;
    Ok(action.output.show(&changed, || print_done(&action.asked, *id, "is changed")))
}

pub(super) fn rotate(RotateArgs { id, keep, action }: &RotateArgs) -> Result<ExitCode, Failure> {
    let rotated = act(action, *id, "rotate", json!({ "keep_seconds": keep.as_secs() }))?;
    Ok(action.output.show(&rotated, || {
        print_done(&action.asked, *id, "has another secret");
        if let Some(secret) = rotated["secret"].as_str() {
            print_stdout(format_args!("secret {secret}"));
        }
    }))
}

pub(super) fn set_paused(
    OneArgs { id, action }: &OneArgs,
    verb: &str,
    done: &str,
) -> Result<ExitCode, Failure> {
    let webhook = act(action, *id, verb, json!({}))?;
    Ok(action.output.show(&webhook, || print_done(&action.asked, *id, done)))
}

/// The answer to an action on a webhook.
fn act(action: &ActionArgs, id: i64, verb: &str, fields: Value) -> Result<Value, Failure> {
    let path = format!("/v1/webhooks/{id}/{verb}");
    Ok(Server::to_act(&action.source)?.act(&action.asked, &path, &[], fields)?)
}

fn print_done(asked: &Asked, id: i64, done: &str) {
    print_stdout(format_args!("{}webhook {id} {done}", asked.run.would()));
}

pub(super) fn ping(
    PingArgs { id, timeout, asked, source }: &PingArgs,
) -> Result<ExitCode, Failure> {
    /// The pause between two looks at whether the message was sent.
    const PAUSE: Duration = Duration::from_millis(100);
    let server = Server::to_act(source)?;
    let sent = server.act(asked, &format!("/v1/webhooks/{id}/ping"), &[], json!({}))?;
    let message = field(&sent, "message_id");
    if asked.is_dry_run() {
        print_stdout(format_args!("nothing changed: {message} would be sent"));
        return Ok(ExitCode::SUCCESS);
    }
    let deadline = Instant::now() + *timeout;
    let path = format!("/v1/webhooks/{id}/failed");
    let mut before = None;
    loop {
        // After the first look, it is known where the message is in the list.
        let most = if before.is_some() { 1 } else { usize::MAX };
        let (failed, _) = server.read_list(&path, &given([("after", before.as_deref())]), most)?;
        let found = failed.iter().find(|failed| failed["message_id"] == message);
        let number = found.and_then(|found| field(found, "id").parse::<i64>().ok());
        before = number.map(|number| (number - 1).to_string());
        match found {
            None => {
                print_stdout(format_args!("the receiver has accepted {message}"));
                return Ok(ExitCode::SUCCESS);
            }
            Some(failed) if failed["again"] == false => {
                let error = field(failed, "error");
                return Err(Failure::new(format!("{message} was not accepted: {error}")));
            }
            Some(_) if Instant::now() >= deadline => {
                let text = format!(
                    "{message} was not sent in time; is the webhook paused or disabled, or no server running?"
                );
                return Err(Failure::new(text));
            }
            Some(_) => thread::sleep(PAUSE),
        }
    }
}
