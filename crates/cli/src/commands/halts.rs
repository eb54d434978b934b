//! `halts`, `continue` and `end-following`: invalid batches that stop others.

use std::process::ExitCode;

use clap::{Arg, ArgMatches, Command, builder::ValueParser};
use grid_batch_core::operators::OperatorVerb;
use serde_json::json;

use crate::commands::{
    failure::Failure,
    operator::{
        NamedBatches, ServiceSelection, batch_arguments, json_flag, print_json, print_wrapped,
        wants_json,
    },
    print::print_stdout,
    remote::{self, Server, age, field},
};

pub(crate) fn list_command() -> Command {
    Command::new("halts")
        .about("Lists the invalid batches that stop others, and since when")
        .long_about(
            "Lists the invalid batches that stop others, where services.*.after_invalid is halt: \
             service, first characters of the id, since when, and why the batch is invalid. `continue` and \
             `end-following` decide. Needs only read permission.",
        )
        .arg(
            Arg::new("service")
                .long("service")
                .value_name("PATTERN")
                .value_parser(ValueParser::new(str::parse::<ServiceSelection>))
                .help("Only batches of this service; * stands for any characters"),
        )
        .arg(json_flag())
        .args(remote::flags_of_both())
}

pub(crate) fn continue_command() -> Command {
    Command::new("continue")
        .about(
            "Lets batches continue that invalid batches stop; those that depend on an invalid batch end as invalid",
        )
        .args(batch_arguments())
        .args(remote::action_flags())
}

pub(crate) fn end_command() -> Command {
    Command::new("end-following")
        .about("Ends the batches that invalid batches stop, as invalid and without sending them")
        .long_about(
            "Ends the batches that invalid batches stop, as invalid and without sending them. With the strategy \
             parallel, these are the batches that wait for the invalid one, and those that wait for these; \
             otherwise, all batches of the service that were never sent. Batches added later are not affected.",
        )
        .args(batch_arguments())
        .args(remote::action_flags())
}

pub(crate) fn list(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let server = Server::to_read(matches)?;
    let service: Option<&ServiceSelection> = matches.get_one("service");
    let (mut halts, _) = server.read_list("/v1/halts", &[], usize::MAX)?;
    halts.retain(|halt| service.is_none_or(|pattern| pattern.is_of(halt)));
    if wants_json(matches) {
        print_json(&json!({ "batches": halts }));
        return Ok(ExitCode::SUCCESS);
    }
    for halt in &halts {
        print_stdout(format_args!("{} {:.32}", field(halt, "service_id"), field(halt, "batch_id")));
        let since = age(halt, "stops_since");
        let stops = if halt["following_ends"] == true {
            "; the batches that follow it are being ended, as an operator decided"
        } else {
            " and stops others"
        };
        print_wrapped("    ", &format!("became invalid {since} ago{stops}"));
        if let Some(error) = halt["last_error"].as_str() {
            print_wrapped("    ", error);
        }
    }
    let place = server.place();
    match halts.iter().filter(|halt| halt["following_ends"] != true).count() {
        0 => print_stdout(format_args!("nothing is stopped{place}")),
        1 => print_stdout(format_args!("1 invalid batch stops others{place}")),
        count => print_stdout(format_args!("{count} invalid batches stop others{place}")),
    }
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn continue_after(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    remote::act_on_each(matches, OperatorVerb::Continue, &NamedBatches::of(matches)?)
}

pub(crate) fn end_following(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    remote::act_on_each(matches, OperatorVerb::EndFollowing, &NamedBatches::of(matches)?)
}
