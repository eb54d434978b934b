//! `actions`: what operators did.

use std::process::ExitCode;

use clap::{Arg, ArgMatches, Command, builder::ValueParser, value_parser};
use grid_batch_core::operators::OperatorVerb;
use grid_batch_core::{ItemId, ServiceId};
use serde_json::{Value, json};

use crate::commands::{
    failure::Failure,
    operator::{json_flag, print_json, print_wrapped, wants_json},
    print::print_stdout,
    remote::{self, Server, age, field},
};

pub(crate) fn command() -> Command {
    Command::new("actions")
        .about("Lists the actions of operators, the latest first: when, who, what and why")
        .arg(argument("service", "ID").value_parser(value_parser!(ServiceId)))
        .arg(argument("batch", "ID").value_parser(ValueParser::new(str::parse::<ItemId>)))
        .arg(argument("operator", "NAME"))
        .arg(argument("verb", "VERB").value_parser(ValueParser::new(str::parse::<OperatorVerb>)))
        .arg(
            Arg::new("limit")
                .long("limit")
                .value_name("NUMBER")
                .default_value("100")
                .value_parser(value_parser!(u32).range(1..))
                .help("Maximum number of actions"),
        )
        .arg(json_flag())
        .args(remote::flags_of_both())
}

fn argument(name: &'static str, value: &'static str) -> Arg {
    Arg::new(name).long(name).value_name(value).help(format!("Only actions of this {name}"))
}

fn limit(matches: &ArgMatches) -> usize {
    matches.get_one::<u32>("limit").copied().unwrap_or(1) as usize
}

pub(crate) fn run(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let server = Server::to_read(matches)?;
    let text = |name| matches.get_one::<String>(name).cloned();
    let service = matches.get_one::<ServiceId>("service").map(ToString::to_string);
    let batch = matches.get_one::<ItemId>("batch").map(ToString::to_string);
    let verb = matches.get_one::<OperatorVerb>("verb").map(|verb| verb.as_str().to_owned());
    let given =
        [("service_id", service), ("batch_id", batch), ("actor", text("operator")), ("verb", verb)];
    let filters: Vec<_> =
        given.iter().filter_map(|(name, value)| Some((*name, value.as_deref()?))).collect();
    let (actions, _) = server.read_list("/v1/operator-actions", &filters, limit(matches))?;
    if wants_json(matches) {
        print_json(&json!({ "actions": actions }));
        return Ok(ExitCode::SUCCESS);
    }
    for action in &actions {
        let (verb, actor) = (field(action, "verb"), field(action, "actor"));
        let (at, ago) = (field(action, "acted_at"), age(action, "acted_at"));
        print_stdout(format_args!("{at} ({ago} ago) {verb} by {actor}"));
        print_wrapped("    ", &about(action));
        let changed = &action["changed"];
        print_wrapped("    ", &format!("{} -> {}", field(changed, "from"), field(changed, "to")));
        if let Some(reason) = action["reason"].as_str() {
            print_wrapped("    ", reason);
        }
    }
    print_stdout(format_args!("{} actions{}", actions.len(), server.place()));
    Ok(ExitCode::SUCCESS)
}

fn about(action: &Value) -> String {
    let (service, batch) = (field(action, "service_id"), field(action, "batch_id"));
    match field(action, "target").as_str() {
        "batch" => format!("{service} {batch:.32}"),
        "service" => service,
        "instance" => format!("the instance {}", field(action, "instance_id")),
        "all_services" => "all services".to_owned(),
        "database" => "the database".to_owned(),
        other => format!("the {other} {}", field(action, "target_id")),
    }
}
