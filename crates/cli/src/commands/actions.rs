//! `actions`: what operators did.

use std::process::ExitCode;

use clap::{Arg, ArgMatches, Command, builder::ValueParser, value_parser};
use grid_batch_core::{
    ActionFilter, ItemId, OperatorStore, OperatorTarget, OperatorVerb, RecordedAction, ServiceId,
};
use serde_json::{Value, json};

use crate::commands::{
    failure::Failure,
    operator::{Database, ago, json_flag, print_json, print_wrapped, short_id, wants_json},
    print::print_stdout,
    remote::{self, Server, Source, age, field},
};

pub(crate) fn command() -> Command {
    Command::new("actions")
        .about("Lists what operators did, the latest first: when, who, what and why")
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
                .help("How many at most"),
        )
        .arg(json_flag())
        .args(remote::flags_of_both())
}

fn argument(name: &'static str, value: &'static str) -> Arg {
    Arg::new(name).long(name).value_name(value).help(format!("Only those of this {name}"))
}

pub(crate) fn run(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    match Source::of(matches) {
        Source::Server => list_of_server(matches),
        Source::Database => list_of_database(matches),
    }
}

fn limit(matches: &ArgMatches) -> usize {
    matches.get_one::<u32>("limit").copied().unwrap_or(1) as usize
}

fn list_of_server(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let server = Server::of(matches)?;
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
        print_wrapped("    ", &about_json(action));
        let changed = &action["changed"];
        print_wrapped("    ", &format!("{} -> {}", field(changed, "from"), field(changed, "to")));
        if let Some(reason) = action["reason"].as_str() {
            print_wrapped("    ", reason);
        }
    }
    print_stdout(format_args!("{} actions", actions.len()));
    Ok(ExitCode::SUCCESS)
}

fn about_json(action: &Value) -> String {
    let (service, batch) = (field(action, "service_id"), field(action, "batch_id"));
    match field(action, "target").as_str() {
        "batch" => format!("{service} {batch:.32}"),
        "service" => service,
        "instance" => format!("the instance {}", field(action, "instance_id")),
        _ => "all services".to_owned(),
    }
}

fn list_of_database(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let database = Database::to_read(matches)?;
    let filter = ActionFilter {
        operator: matches.get_one("operator").cloned(),
        verb: matches.get_one("verb").copied(),
        service_id: matches.get_one("service").cloned(),
        batch_id: matches.get_one("batch").copied(),
    };
    let actions = database.store.actions(&filter, None, limit(matches))?;
    if wants_json(matches) {
        let actions: Vec<Value> = actions.iter().map(action_json).collect();
        print_json(&json!({ "database": database.name(), "actions": actions }));
        return Ok(ExitCode::SUCCESS);
    }
    for recorded in &actions {
        let action = &recorded.action;
        let at = (recorded.acted_at.rfc3339(), ago(recorded.acted_at, database.now()));
        let (verb, name) = (action.verb, &action.operator.name);
        print_stdout(format_args!("{} ({}) {verb} by {name}", at.0, at.1));
        print_wrapped("    ", &about(&action.target));
        print_wrapped("    ", &format!("{} -> {}", recorded.before, recorded.after));
        if let Some(reason) = &action.reason {
            print_wrapped("    ", reason);
        }
    }
    print_stdout(format_args!("{} actions in {}", actions.len(), database.name()));
    Ok(ExitCode::SUCCESS)
}

fn about(target: &OperatorTarget) -> String {
    match target {
        OperatorTarget::Batch { service_id, batch_id, .. } => {
            format!("{service_id} {}", short_id(batch_id))
        }
        OperatorTarget::Service(service_id) | OperatorTarget::Nonces { service_id, .. } => {
            service_id.to_string()
        }
        OperatorTarget::AllServices => "all services".to_owned(),
        OperatorTarget::Instance(instance) => format!("the instance {instance}"),
    }
}

fn action_json(recorded: &RecordedAction) -> Value {
    let action = &recorded.action;
    let batch = action.target.batch();
    json!({
        "id": recorded.id,
        "acted_at": recorded.acted_at.rfc3339(),
        "operator": action.operator.name,
        "source": action.operator.source.as_str(),
        "verb": action.verb.as_str(),
        "target": action.target.kind(),
        "service_id": action.target.service_id().map(ServiceId::as_str),
        "batch_id": batch.map(|(id, _)| id.to_string()),
        "attempt": batch.and_then(|(_, attempt)| attempt),
        "instance": action.target.instance().map(|instance| instance.as_str()),
        "reason": action.reason,
        "changed": { "from": recorded.before, "to": recorded.after },
    })
}
