//! `events`: what happens to the batches of a running server.

use std::{process::ExitCode, time::Duration};

use clap::{Arg, ArgAction, ArgMatches, Command};
use serde_json::Value;

use crate::commands::{
    failure::Failure,
    operator::wants_json,
    print::print_stdout,
    remote::{self, Retries, Server, field},
};

pub(crate) fn command() -> Command {
    Command::new("events")
        .about("Prints the events of batches in order, and with --follow new ones")
        .arg(
            Arg::new("service")
                .long("service")
                .value_name("SERVICE")
                .help("Only events of this service"),
        )
        .arg(
            Arg::new("kind")
                .long("kind")
                .value_name("KINDS")
                .help("Only events of these kinds, separated by commas, such as held,status"),
        )
        .arg(
            Arg::new("after").long("after").value_name("CURSOR").help(
                "Position to start after [default: before the oldest event; with --follow, now]",
            ),
        )
        .arg(
            Arg::new("follow")
                .long("follow")
                .short('f')
                .action(ArgAction::SetTrue)
                .help("Print new events until the command is stopped"),
        )
        .args(remote::flags())
}

pub(crate) fn run(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let server = Server::of(matches)?;
    let follow = matches.get_flag("follow");
    let text = |name: &str| matches.get_one::<String>(name).map(String::as_str);
    let filters = [("service_id", text("service")), ("kind", text("kind"))];
    let filters = filters.into_iter().filter_map(|(name, value)| Some((name, value?)));
    let wait = follow.then_some(("wait", "30"));
    let unchanging: Vec<_> = [("limit", "1000")].into_iter().chain(filters).chain(wait).collect();
    let from = text("after").unwrap_or(if follow { "latest" } else { "oldest" });
    let mut after = from.to_owned();
    loop {
        let parameters = [&unchanging[..], &[("after", &after)]].concat();
        // A program that follows events continues after the server was busy.
        let retries =
            Retries::until(if follow { Duration::from_secs(300) } else { Duration::ZERO });
        let page = retries.run(|| server.client.get("/v1/events", &parameters))?;
        page["data"].as_array().into_iter().flatten().for_each(|event| print(matches, event));
        let more = page["more"].as_bool().unwrap_or(false);
        after = field(&page, "next");
        if !follow && !more {
            return Ok(ExitCode::SUCCESS);
        }
    }
}

fn print(matches: &ArgMatches, event: &Value) {
    if wants_json(matches) {
        return print_stdout(event);
    }
    let id = field(event, "batch_id");
    let detail = field(event, "detail");
    let detail = if detail.is_empty() { detail } else { format!(": {detail}") };
    print_stdout(format_args!(
        "{} {} {} {} {}{detail}",
        field(event, "at"),
        field(event, "service_id"),
        id.get(..12).unwrap_or(&id),
        field(event, "kind"),
        field(event, "state"),
    ));
}
