//! `webhooks`: where events are delivered, and what could not be.

mod of_database;
mod of_server;

use std::process::ExitCode;

use clap::{Arg, ArgAction, ArgMatches, Command, builder::ValueParser, value_parser};
use grid_batch_core::{EventKind, ServiceId, WebhookId};

use crate::commands::{
    failure::Failure,
    operator::json_flag,
    remote::{self, Source},
};

pub(crate) fn command() -> Command {
    Command::new("webhooks")
        .visible_alias("webhook")
        .about("Lists, creates and removes webhooks, and sends messages once more that failed")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(
            Command::new("list")
                .about("Lists the webhooks and how their delivery goes; with --database, it needs only the right to read")
                .arg(json_flag())
                .args(remote::flags_of_both()),
        )
        .subcommand(create_command())
        .subcommand(
            Command::new("remove")
                .about("Removes a webhook, with the messages that failed")
                .arg(id_argument())
                .args(remote::flags_of_both()),
        )
        .subcommand(
            Command::new("failed")
                .about("Lists the messages that were given up; with --database, it needs only the right to read")
                .arg(id_argument())
                .arg(json_flag())
                .args(remote::flags_of_both()),
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
        .arg(json_flag())
        .args(remote::flags_of_both())
}

fn id_argument() -> Arg {
    Arg::new("id").required(true).value_parser(value_parser!(i64)).help("Id of the webhook")
}

pub(crate) fn run(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let Some((command, matches)) = matches.subcommand() else {
        return Err(Failure::new("there is no such command; see grid-batch webhooks --help"));
    };
    match Source::of(matches) {
        Source::Server => of_server::run(command, matches),
        Source::Database => of_database::run(command, matches),
    }
}

fn webhook_id(matches: &ArgMatches) -> WebhookId {
    WebhookId(matches.get_one::<i64>("id").copied().unwrap_or_default())
}
