//! `pause` and `resume`: whether new submissions start. `drain` and `release-claim`: which instance submits.

use std::{convert::Infallible, process::ExitCode};

use clap::{Arg, ArgAction, ArgMatches, Command, builder::ValueParser, value_parser};
use grid_batch_core::ServiceId;
use grid_batch_core::claims::InstanceId;
use serde_json::{Value, json};

use crate::commands::{
    failure::Failure,
    operator::{dry_run_flag, is_dry_run, json_flag, print_json, reason_flag, wants_json},
    print::print_stdout,
    remote::{self, Server, field},
};

pub(crate) fn pause_command() -> Command {
    arguments(Command::new("pause").about(
        "Pauses services, or all: no instance submits their batches; batches under way are followed",
    ))
    .arg(reason_flag())
    .arg(wait_flag())
}

pub(crate) fn resume_command() -> Command {
    arguments(Command::new("resume").about("Ends the pause of services, or of all"))
        .arg(reason_flag())
}

pub(crate) fn drain_command() -> Command {
    Command::new("drain")
        .about(
            "Makes an instance start no new submission and give its services to other instances; it still accepts \
             batches",
        )
        .arg(
            Arg::new("instance")
                .required(true)
                .value_parser(ValueParser::new(|text: &str| Ok::<_, Infallible>(InstanceId::new(text))))
                .help("Id or name of the instance"),
        )
        .arg(Arg::new("end").long("end").action(ArgAction::SetTrue).help("Ends the drain"))
        .arg(reason_flag())
        .arg(wait_flag())
        .arg(dry_run_flag())
        .arg(json_flag())
        .args(remote::flags_of_both())
}

pub(crate) fn release_claim_command() -> Command {
    Command::new("release-claim")
        .about(
            "Ends the claims of services; any instance may take them next, including the same one",
        )
        .arg(
            Arg::new("service")
                .value_parser(value_parser!(ServiceId))
                .num_args(1..)
                .required(true)
                .help("Ids of services"),
        )
        .args(remote::action_flags())
}

fn wait_flag() -> Arg {
    Arg::new("wait")
        .long("wait")
        .value_name("SECONDS")
        .value_parser(value_parser!(u64).range(..=60))
        .help("Waits until no batch is being sent any more, for up to 60 seconds")
}

fn arguments(command: Command) -> Command {
    command
        .arg(
            Arg::new("service")
                .value_parser(value_parser!(ServiceId))
                .num_args(1..)
                .required_unless_present("all")
                .conflicts_with("all")
                .help("Ids of services"),
        )
        .arg(
            Arg::new("all").long("all").action(ArgAction::SetTrue).help(
                "All services, including new ones; pauses of single services are not changed",
            ),
        )
        .arg(dry_run_flag())
        .arg(json_flag())
        .args(remote::flags_of_both())
}

pub(crate) fn pause(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    run(matches, "pause")
}

pub(crate) fn resume(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    run(matches, "resume")
}

pub(crate) fn drain(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let verb = if matches.get_flag("end") { "resume" } else { "drain" };
    let instance = matches.get_one::<InstanceId>("instance").into_iter();
    let instance = instance.map(InstanceId::as_str);
    act(matches, instance.map(|id| Target::new(id, remote::action_path("instances", id, verb))))
}

pub(crate) fn release_claim(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    act(matches, services(matches, "claims", "release").into_iter())
}

fn run(matches: &ArgMatches, verb: &str) -> Result<ExitCode, Failure> {
    let mut targets = services(matches, "services", verb);
    if targets.is_empty() {
        targets.push(Target::new("all services", format!("/v1/{verb}")));
    }
    act(matches, targets.into_iter())
}

/// The target of an action, and its path.
struct Target {
    name: String,
    path: String,
}

impl Target {
    fn new(name: &str, path: String) -> Self {
        Self { name: name.to_owned(), path }
    }
}

fn services(matches: &ArgMatches, kind: &str, verb: &str) -> Vec<Target> {
    let services = matches.get_many::<ServiceId>("service").into_iter().flatten();
    let target =
        |id: &ServiceId| Target::new(id.as_str(), remote::action_path(kind, id.as_str(), verb));
    services.map(target).collect()
}

fn act(matches: &ArgMatches, targets: impl Iterator<Item = Target>) -> Result<ExitCode, Failure> {
    let server = Server::to_act(matches)?;
    let wait = matches.try_get_one::<u64>("wait").ok().flatten().map(ToString::to_string);
    // Only what stops something has a wait.
    let wait = wait.as_deref().map(|wait| ("wait", wait));
    let mut results = Vec::new();
    for Target { name, path } in targets {
        let wait = wait.filter(|_| !path.ends_with("/resume"));
        let done = server.act(matches, &path, &Vec::from_iter(wait), json!({}));
        let done = done.map_err(|error| Server::failed(error).about(&name))?;
        if !wants_json(matches) {
            print(matches, &name, &done);
        }
        results.push(json!({
            "target": name,
            "from": done["changed"]["from"],
            "to": done["changed"]["to"],
            "being_sent": done["being_sent"]["count"].as_u64().unwrap_or_default(),
        }));
    }
    if wants_json(matches) {
        print_json(&json!({ "dry_run": is_dry_run(matches), "results": results }));
    }
    Ok(ExitCode::SUCCESS)
}

/// The change, and the batches that are still being sent.
fn print(matches: &ArgMatches, name: &str, done: &Value) {
    const MOST: usize = 10;
    let would = if is_dry_run(matches) { "nothing changed; without --dry-run: " } else { "" };
    let (before, after) = (field(&done["changed"], "from"), field(&done["changed"], "to"));
    print_stdout(format_args!("{would}{name}: {before} -> {after}"));
    match done["being_sent"]["count"].as_u64().unwrap_or_default() {
        0 => return,
        1 => print_stdout(format_args!("1 batch is being sent:")),
        count => print_stdout(format_args!("{count} batches are being sent, such as:")),
    }
    for batch in done["being_sent"]["batches"].as_array().into_iter().flatten().take(MOST) {
        let (service, batch) = (field(batch, "service_id"), field(batch, "batch_id"));
        print_stdout(format_args!("  {service} {batch}"));
    }
}
