//! `retry`: ends the delays of batches that the ledger did not accept.

use std::process::ExitCode;

use clap::Args;
use grid_batch_core::ServiceId;
use grid_batch_core::operators::OperatorVerb;
use serde_json::{Value, json};

use crate::commands::{
    arguments::ActionArgs,
    failure::Failure,
    operator::{BatchName, NamedBatches, ServiceSelection, Word},
    print::{print_stderr, print_stdout},
    remote::{self, Server, entries, field, joined},
};

/// Ends the delays of batches that the ledger did not accept: they are sent again now
///
/// It also ends a delay that the ledger asked for, and the holds of batches that it refused repeatedly. A running server
/// finds the batches within a second. A batch that an operator holds stays held: use `release`. Services with rows that
/// another transaction has locked are left out, and the exit code is 1: run the command again.
#[derive(Debug, Args)]
pub(crate) struct RetryArgs {
    /// Ids of services, to end all their delays; or ids of batches, or their first characters. Name a batch as
    /// ID@ATTEMPT if its id is not hex digits
    #[arg(value_name = "SERVICE|BATCH", required_unless_present = "all", conflicts_with = "all")]
    batch: Vec<Word>,
    /// All services
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    action: ActionArgs,
}

/// The services or batches that the arguments name.
enum Named {
    Services(Vec<ServiceId>),
    Batches(NamedBatches),
}

impl Named {
    fn of(words: &[Word]) -> Result<Self, Failure> {
        let (mut services, mut names) = (Vec::new(), Vec::<BatchName>::new());
        for word in words {
            match word {
                Word::Batch(name) => names.push(name.clone()),
                Word::Service(ServiceSelection::One(service)) => services.push(service.clone()),
                Word::Service(ServiceSelection::Several(pattern)) => {
                    return Err(Failure::usage(format!(
                        "{pattern} is not the id of a service; name each, or give --all"
                    )));
                }
            }
        }
        match (services.len(), names.is_empty()) {
            (_, true) => Ok(Self::Services(services)),
            (0 | 1, false) => {
                let service = services.pop().map(ServiceSelection::One);
                Ok(Self::Batches(NamedBatches { service, names }))
            }
            (_, false) => Err(Failure::usage(
                "services and batches are named; name services, or batches with at most one service",
            )),
        }
    }
}

pub(crate) fn run(RetryArgs { batch, action, .. }: &RetryArgs) -> Result<ExitCode, Failure> {
    match Named::of(batch)? {
        Named::Batches(named) => remote::act_on_each(action, OperatorVerb::Retry, &named),
        Named::Services(services) => retry_services(action, &services),
    }
}

/// The batches whose delays have ended, each as an object with `service_id` and `batch_id`.
#[derive(Default)]
struct Ended {
    batches: Vec<Value>,
    /// Why some were left out.
    refused: Vec<String>,
}

/// Retries the delayed batches of services, page by page.
fn retry_services(args: &ActionArgs, services: &[ServiceId]) -> Result<ExitCode, Failure> {
    let server = Server::to_act(&args.source)?;
    let mut filters: Vec<_> = services
        .iter()
        .map(|service| json!({ "state": "delayed", "service_id": service.as_str() }))
        .collect();
    if filters.is_empty() {
        filters.push(json!({ "state": "delayed" }));
    }
    let mut ended = Ended::default();
    for filter in filters {
        let mut after = Value::Null;
        loop {
            let mut fields = json!({ "verb": "retry", "filter": filter, "limit": 1_000 });
            if !after.is_null() {
                fields["after"] = after;
            }
            let page = server.act(&args.asked, "/v1/batches/actions", &[], fields);
            let page = page.map_err(Server::failed)?;
            ended.add(&page);
            after = page["next"].clone();
            if after.is_null() {
                break;
            }
        }
    }
    Ok(print(args, &ended))
}

impl Ended {
    fn add(&mut self, page: &Value) {
        self.batches.extend(
            entries(page, "data")
                .iter()
                .map(|it| json!({ "service_id": it["service_id"], "batch_id": it["batch_id"] })),
        );
        self.refused.extend(entries(page, "refused").iter().map(|it| {
            let (service, batch) = (field(it, "service_id"), field(it, "batch_id"));
            format!("{service} {batch:.12}: {}", field(it, "reason"))
        }));
    }
}

fn print(args: &ActionArgs, ended: &Ended) -> ExitCode {
    let dry_run = args.asked.is_dry_run();
    let json = json!({ "dry_run": dry_run, "batches": ended.batches, "refused": ended.refused });
    args.output.show(&json, || {
        for batch in &ended.batches {
            print_stdout(joined(batch, &["service_id", "batch_id"], " "));
        }
        match (ended.batches.len(), ended.refused.len()) {
            (count, _) if dry_run => print_stdout(format_args!(
                "nothing changed: the delays of {count} batches would end"
            )),
            (0, 0) => print_stdout("nothing is delayed"),
            (count, _) => print_stdout(format_args!("the delays of {count} batches are ended")),
        }
        for refused in &ended.refused {
            print_stderr(format_args!("grid-batch: {refused}"));
        }
    });
    if ended.refused.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
