//! `actions`: what operators did.

use std::process::ExitCode;

use clap::{Args, value_parser};
use grid_batch_client::given;
use grid_batch_core::operators::OperatorVerb;
use grid_batch_core::{ItemId, ServiceId};
use serde_json::Value;

use crate::commands::{
    arguments::ReadArgs,
    failure::Failure,
    operator::print_wrapped,
    print::print_stdout,
    remote::{Server, age, change, field},
};

/// Lists the actions of operators, the latest first: when, who, what and why
#[derive(Debug, Args)]
pub(crate) struct ActionsArgs {
    /// Only actions of this service
    #[arg(long, value_name = "ID")]
    service: Option<ServiceId>,
    /// Only actions of this batch
    #[arg(long, value_name = "ID")]
    batch: Option<ItemId>,
    /// Only actions of this operator
    #[arg(long, value_name = "NAME")]
    operator: Option<String>,
    /// Only actions of this verb
    #[arg(long, value_name = "VERB")]
    verb: Option<OperatorVerb>,
    /// Maximum number of actions
    #[arg(long, value_name = "NUMBER", default_value = "100", value_parser = value_parser!(u32).range(1..))]
    limit: u32,
    #[command(flatten)]
    read: ReadArgs,
}

pub(crate) fn run(args: &ActionsArgs) -> Result<ExitCode, Failure> {
    let server = Server::to_read(&args.read.source)?;
    let batch = args.batch.as_ref().map(ToString::to_string);
    let filters = given([
        ("service_id", args.service.as_ref().map(ServiceId::as_str)),
        ("batch_id", batch.as_deref()),
        ("actor", args.operator.as_deref()),
        ("verb", args.verb.map(|verb| verb.as_str())),
    ]);
    let (actions, _) = server.read_list("/v1/operator-actions", &filters, args.limit as usize)?;
    Ok(args.read.output.show_list("actions", &actions, || {
        actions.iter().for_each(print);
        print_stdout(format_args!("{} actions{}", actions.len(), server.place()));
    }))
}

fn print(action: &Value) {
    let (verb, actor) = (field(action, "verb"), field(action, "actor"));
    let (at, ago) = (field(action, "acted_at"), age(action, "acted_at"));
    print_stdout(format_args!("{at} ({ago} ago) {verb} by {actor}"));
    print_wrapped("    ", &about(action));
    print_wrapped("    ", &change(action));
    if let Some(reason) = action["reason"].as_str() {
        print_wrapped("    ", reason);
    }
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
