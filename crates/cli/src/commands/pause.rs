//! `pause` and `resume`: whether new submissions start. `drain` and `release-claim`: which instance submits.

use std::{convert::Infallible, process::ExitCode};

use clap::{Arg, ArgAction, ArgMatches, Command, builder::ValueParser, value_parser};
use grid_batch_core::{
    ActionEffect, ActionOutcome, InstanceId, OperatorTarget, OperatorVerb, ServiceId,
};

use crate::commands::{
    failure::Failure,
    flags,
    operator::{Database, dry_run_flag, is_dry_run, operator_action, reason_flag},
    print::print_stdout,
};

pub(crate) fn pause_command() -> Command {
    arguments(Command::new("pause").about(
        "Starts no new submission of services, or of any, on all instances; what is under way is followed",
    ))
    .arg(reason_flag().required(true))
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
        .arg(dry_run_flag())
        .args(flags::settings())
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
        .args(flags::settings())
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
        .args(flags::settings())
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

fn act(
    matches: &ArgMatches,
    verb: OperatorVerb,
    targets: Vec<(String, OperatorTarget)>,
) -> Result<ExitCode, Failure> {
    let database = Database::to_write(matches)?;
    for (name, target) in targets {
        let kind = target.kind();
        let outcome = database.store.act(&operator_action(matches, verb, target))?;
        let ActionEffect { before, after, .. } = match outcome {
            ActionOutcome::Done(effect) => effect,
            ActionOutcome::Refused(refusal) => {
                return Err(Failure::new(format!("{name}: nothing changed: {refusal}")));
            }
            ActionOutcome::NotFound => {
                return Err(Failure::new(format!("{name}: there is no such {kind}")));
            }
        };
        let would = if is_dry_run(matches) { "nothing changed; without --dry-run: " } else { "" };
        print_stdout(format_args!("{would}{name}: {before} -> {after}"));
    }
    Ok(ExitCode::SUCCESS)
}
