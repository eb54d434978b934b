//! `pause` and `resume`: whether new submissions start. `drain` and `release-claim`: which instance submits.

use std::{
    convert::Infallible,
    process::ExitCode,
    thread,
    time::{Duration, Instant},
};

use clap::{Arg, ArgAction, ArgMatches, Command, builder::ValueParser, value_parser};
use grid_batch_core::{
    ActionEffect, ActionOutcome, InstanceId, OperatorStore, OperatorTarget, OperatorVerb,
    ServiceId, SubmittedBatch,
};
use serde_json::{Value, json};

use crate::commands::{
    failure::Failure,
    operator::{
        Database, dry_run_flag, is_dry_run, json_flag, operator_action, print_json, reason_flag,
        wants_json,
    },
    print::print_stdout,
    remote::{self, Server, Source, field},
};

pub(crate) fn pause_command() -> Command {
    arguments(Command::new("pause").about(
        "Starts no new submission of services, or of any, on all instances; what is under way is followed",
    ))
    .arg(reason_flag().required(true))
    .arg(wait_flag())
}

pub(crate) fn resume_command() -> Command {
    arguments(Command::new("resume").about("Ends the pause of services, or of all"))
        .arg(reason_flag())
}

pub(crate) fn drain_command() -> Command {
    Command::new("drain")
        .about(
            "Has an instance start no new submission and give up its services, which the others take; it goes on \
             accepting batches",
        )
        .arg(
            Arg::new("instance")
                .required(true)
                .value_parser(ValueParser::new(|text: &str| Ok::<_, Infallible>(InstanceId::new(text))))
                .help("Id or name of the instance"),
        )
        .arg(Arg::new("end").long("end").action(ArgAction::SetTrue).help("Ends the drain"))
        .arg(reason_flag().required(true))
        .arg(wait_flag())
        .arg(dry_run_flag())
        .arg(json_flag())
        .args(remote::flags_of_both())
}

pub(crate) fn release_claim_command() -> Command {
    Command::new("release-claim")
        .about("Ends the claims of services; any instance takes them next, also the same one")
        .arg(
            Arg::new("service")
                .value_parser(value_parser!(ServiceId))
                .num_args(1..)
                .required(true)
                .help("Ids of services"),
        )
        .arg(reason_flag().required(true))
        .arg(dry_run_flag())
        .arg(json_flag())
        .args(remote::flags_of_both())
}

fn wait_flag() -> Arg {
    Arg::new("wait")
        .long("wait")
        .value_name("SECONDS")
        .value_parser(value_parser!(u64).range(..=60))
        .help("Waits until no batch is being sent any more, for up to 60 seconds")
}

fn wait_of(matches: &ArgMatches) -> Option<u64> {
    matches.try_get_one::<u64>("wait").ok().flatten().copied()
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
        .arg(Arg::new("all").long("all").action(ArgAction::SetTrue).help(
            "All services, also those that do not exist yet; pauses of single services are not changed",
        ))
        .arg(dry_run_flag())
        .arg(json_flag())
        .args(remote::flags_of_both())
}

pub(crate) fn pause(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    run(matches, OperatorVerb::Pause)
}

pub(crate) fn resume(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    run(matches, OperatorVerb::Resume)
}

pub(crate) fn drain(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let verb = if matches.get_flag("end") { OperatorVerb::Resume } else { OperatorVerb::Drain };
    let instance = matches.get_one::<InstanceId>("instance").into_iter();
    let targets = instance.map(|it| (it.to_string(), OperatorTarget::Instance(it.clone())));
    act(matches, verb, targets.collect())
}

pub(crate) fn release_claim(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    act(matches, OperatorVerb::ReleaseClaim, services(matches))
}

fn run(matches: &ArgMatches, verb: OperatorVerb) -> Result<ExitCode, Failure> {
    let mut targets = services(matches);
    if targets.is_empty() {
        targets.push(("all services".to_owned(), OperatorTarget::AllServices));
    }
    act(matches, verb, targets)
}

fn services(matches: &ArgMatches) -> Vec<(String, OperatorTarget)> {
    let services = matches.get_many::<ServiceId>("service").into_iter().flatten();
    services
        .map(|service| (service.to_string(), OperatorTarget::Service(service.clone())))
        .collect()
}

/// A target that was changed: what it was, and what it is.
struct ChangedTarget {
    name: String,
    before: String,
    after: String,
    /// The batches that are being sent although they were stopped.
    being_sent: BeingSent,
}

impl ChangedTarget {
    fn of_server(name: String, done: &Value) -> Self {
        let (before, after) = (field(&done["changed"], "from"), field(&done["changed"], "to"));
        let batches = done["being_sent"]["batches"].as_array().into_iter().flatten();
        let batches = batches.map(|batch| (field(batch, "service_id"), field(batch, "batch_id")));
        let count = done["being_sent"]["count"].as_u64().unwrap_or_default();
        Self { name, before, after, being_sent: BeingSent { count, batches: batches.collect() } }
    }
}

/// The batches that are being sent: they were stopped too late.
#[derive(Default)]
struct BeingSent {
    count: u64,
    /// The service and the id of the first of them.
    batches: Vec<(String, String)>,
}

impl BeingSent {
    /// Reads them from the database. Instances call back what they have not sent within a second.
    fn read(
        matches: &ArgMatches,
        database: &Database,
        target: &OperatorTarget,
    ) -> Result<Self, Failure> {
        let wait = Duration::from_secs(wait_of(matches).unwrap_or_default());
        let started = Instant::now();
        loop {
            let found = database.store.being_sent(target)?;
            if found.is_empty() || is_dry_run(matches) || started.elapsed() >= wait {
                let batch =
                    |it: &SubmittedBatch| (it.service_id.to_string(), it.batch_id.to_string());
                let count = u64::try_from(found.len()).unwrap_or(u64::MAX);
                return Ok(Self { count, batches: found.iter().map(batch).collect() });
            }
            thread::sleep(READ_INTERVAL);
        }
    }

    fn print(&self) {
        const MOST: usize = 10;
        match self.count {
            0 => return,
            1 => print_stdout(format_args!("1 batch is being sent:")),
            count => print_stdout(format_args!("{count} batches are being sent, such as:")),
        }
        for (service, batch) in self.batches.iter().take(MOST) {
            print_stdout(format_args!("  {service} {batch}"));
        }
    }
}

const READ_INTERVAL: Duration = Duration::from_millis(100);

fn act(
    matches: &ArgMatches,
    verb: OperatorVerb,
    targets: Vec<(String, OperatorTarget)>,
) -> Result<ExitCode, Failure> {
    let mut changes = Vec::new();
    match Source::of(matches) {
        Source::Server => {
            let server = Server::of(matches)?;
            for (name, target) in targets {
                let path = path_of(verb, &target);
                let wait = wait_of(matches).filter(|_| verb.stops_sending());
                let done = remote::act_on(matches, &server, &path, wait);
                let done = done.map_err(|failure| failure.about(&name))?;
                changes.push(print(matches, ChangedTarget::of_server(name, &done)));
            }
        }
        Source::Database => {
            let database = Database::to_write(matches)?;
            for (name, target) in targets {
                let change = change(matches, &database, verb, name, target)?;
                changes.push(print(matches, change));
            }
        }
    }
    if wants_json(matches) {
        let change = |it: &ChangedTarget| {
            json!({
                "target": it.name,
                "from": it.before,
                "to": it.after,
                "being_sent": it.being_sent.count,
            })
        };
        let results: Vec<_> = changes.iter().map(change).collect();
        print_json(&json!({ "dry_run": is_dry_run(matches), "results": results }));
    }
    Ok(ExitCode::SUCCESS)
}

fn path_of(verb: OperatorVerb, target: &OperatorTarget) -> String {
    let verb = match verb {
        OperatorVerb::Drain => "drain",
        OperatorVerb::Pause => "pause",
        OperatorVerb::ReleaseClaim => "release",
        _ => "resume",
    };
    match target {
        OperatorTarget::Service(id) if verb == "release" => {
            remote::action_path("claims", id.as_str(), verb)
        }
        OperatorTarget::Service(id) => remote::action_path("services", id.as_str(), verb),
        OperatorTarget::Instance(id) => remote::action_path("instances", id.as_str(), verb),
        _ => format!("/v1/{verb}"),
    }
}

fn change(
    matches: &ArgMatches,
    database: &Database,
    verb: OperatorVerb,
    name: String,
    target: OperatorTarget,
) -> Result<ChangedTarget, Failure> {
    let kind = target.kind();
    match database.store.act(&operator_action(matches, verb, target.clone()))? {
        ActionOutcome::Done(ActionEffect { before, after, .. }) => {
            let being_sent = if verb.stops_sending() {
                BeingSent::read(matches, database, &target)?
            } else {
                BeingSent::default()
            };
            Ok(ChangedTarget { name, before, after, being_sent })
        }
        ActionOutcome::Refused(refusal) => {
            Err(Failure::new(format!("{name}: nothing changed: {refusal}")))
        }
        ActionOutcome::NotFound => Err(Failure::new(format!("{name}: there is no such {kind}"))),
    }
}

fn print(matches: &ArgMatches, change: ChangedTarget) -> ChangedTarget {
    if !wants_json(matches) {
        let ChangedTarget { name, before, after, being_sent } = &change;
        let would = if is_dry_run(matches) { "nothing changed; without --dry-run: " } else { "" };
        print_stdout(format_args!("{would}{name}: {before} -> {after}"));
        being_sent.print();
    }
    change
}
