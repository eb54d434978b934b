//! `pause` and `resume`: whether new submissions start.

use std::process::ExitCode;

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use grid_batch_core::{ActionEffect, ActionOutcome, OperatorTarget, OperatorVerb, ServiceId};

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

fn run(matches: &ArgMatches, verb: OperatorVerb) -> Result<ExitCode, Failure> {
    let database = Database::to_write(matches)?;
    let services = matches.get_many::<ServiceId>("service").into_iter().flatten();
    let mut targets: Vec<(String, OperatorTarget)> = services
        .map(|service| (service.to_string(), OperatorTarget::Service(service.clone())))
        .collect();
    if targets.is_empty() {
        targets.push(("all services".to_owned(), OperatorTarget::AllServices));
    }
    for (name, target) in targets {
        let outcome = database.store.act(&operator_action(matches, verb, target))?;
        let ActionEffect { before, after, .. } = match outcome {
            ActionOutcome::Done(effect) => effect,
            ActionOutcome::Refused(refusal) => {
                return Err(Failure::new(format!("{name}: nothing changed: {refusal}")));
            }
            ActionOutcome::NotFound => {
                return Err(Failure::new(format!("{name}: there is no such service")));
            }
        };
        let would = if is_dry_run(matches) { "nothing changed; without --dry-run: " } else { "" };
        print_stdout(format_args!("{would}{name}: {before} -> {after}"));
    }
    Ok(ExitCode::SUCCESS)
}
