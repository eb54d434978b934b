//! `halts`, `continue` and `end-following`: invalid batches that stop others.

use std::process::ExitCode;

use clap::{Arg, ArgMatches, Command, builder::ValueParser};
use grid_batch_core::{Halt, OperatorVerb};
use serde_json::json;

use crate::commands::{
    failure::Failure,
    flags,
    operator::{
        Database, NamedBatches, ServiceSelection, act_on_each, ago, batch_arguments, batch_json,
        dry_run_flag, json_flag, print_json, print_wrapped, reason_flag, short_id, wants_json,
    },
    print::print_stdout,
    remote::{self, Source},
};

pub(crate) fn list_command() -> Command {
    Command::new("halts")
        .about("Lists the invalid batches that stop others, and since when")
        .long_about(
            "Lists the invalid batches that stop others, where services.*.after_invalid is halt: \
             service, first characters of the id, since when, and why the batch is invalid. `continue` and \
             `end-following` decide. Needs only the right to read.",
        )
        .arg(
            Arg::new("service")
                .long("service")
                .value_name("PATTERN")
                .value_parser(ValueParser::new(str::parse::<ServiceSelection>))
                .help("Only batches of this service; * stands for any characters"),
        )
        .arg(json_flag())
        .args(flags::of_database())
}

pub(crate) fn continue_command() -> Command {
    Command::new("continue")
        .about(
            "Lets batches go on that invalid ones stop; those that depend on them end as invalid",
        )
        .args(batch_arguments())
        .arg(reason_flag())
        .arg(dry_run_flag())
        .arg(json_flag())
        .args(remote::flags_of_both())
}

pub(crate) fn end_command() -> Command {
    Command::new("end-following")
        .about("Ends the batches that invalid ones stop, as invalid and without sending them")
        .long_about(
            "Ends the batches that invalid ones stop, as invalid and without sending them. In the parallel \
             strategy, these are the batches that wait for the invalid one, and those that wait for these; in \
             the others, all batches of the service that were never sent. Batches that are added later are \
             not affected.",
        )
        .args(batch_arguments())
        .arg(reason_flag().required(true))
        .arg(dry_run_flag())
        .arg(json_flag())
        .args(remote::flags_of_both())
}

pub(crate) fn list(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let database = Database::to_read(matches)?;
    let service: Option<&ServiceSelection> = matches.get_one("service");
    let mut halts = read(&database)?;
    halts.retain(|halt| service.is_none_or(|pattern| pattern.matches(&halt.batch.service_id)));
    if wants_json(matches) {
        print_document(&database, &halts);
        return Ok(ExitCode::SUCCESS);
    }
    for Halt { batch, since, is_ending, .. } in &halts {
        print_stdout(format_args!("{} {}", batch.service_id, short_id(&batch.batch_id)));
        let since = ago(*since, database.now());
        let stops = if *is_ending {
            "; an operator has ended what follows it, which is not done yet"
        } else {
            " and stops others"
        };
        print_wrapped("    ", &format!("became invalid {since}{stops}"));
        if let Some(error) = &batch.last_error {
            print_wrapped("    ", error);
        }
    }
    let name = database.name();
    match halts.iter().filter(|halt| !halt.is_ending).count() {
        0 => print_stdout(format_args!("nothing is stopped in {name}")),
        1 => print_stdout(format_args!("1 invalid batch stops others in {name}")),
        count => print_stdout(format_args!("{count} invalid batches stop others in {name}")),
    }
    Ok(ExitCode::SUCCESS)
}

fn read(database: &Database) -> Result<Vec<Halt>, Failure> {
    const PAGE: usize = 500;
    let mut halts: Vec<Halt> = Vec::new();
    loop {
        let page = database.store.halts(halts.last(), PAGE)?;
        let is_last = page.len() < PAGE;
        halts.extend(page);
        if is_last {
            return Ok(halts);
        }
    }
}

fn print_document(database: &Database, halts: &[Halt]) {
    let batches = halts.iter().map(|Halt { batch, since, is_ending, .. }| {
        let mut object = batch_json(batch);
        object["following_ends"] = (*is_ending).into();
        object["stops_since"] = since.rfc3339().into();
        object
    });
    print_json(&json!({
        "database": database.name(),
        "read_at": database.now().rfc3339(),
        "batches": batches.collect::<Vec<_>>(),
    }));
}

pub(crate) fn continue_after(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let verb = OperatorVerb::Continue;
    match Source::of(matches) {
        Source::Server => remote::act_on_each(matches, verb, &NamedBatches::of(matches)?),
        Source::Database => {
            act_on_each(matches, verb, |_| "the batches that it stopped go on".to_owned())
        }
    }
}

pub(crate) fn end_following(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let verb = OperatorVerb::EndFollowing;
    match Source::of(matches) {
        Source::Server => remote::act_on_each(matches, verb, &NamedBatches::of(matches)?),
        Source::Database => act_on_each(matches, verb, |_| {
            "the batches that it stops end as invalid, without being sent".to_owned()
        }),
    }
}
