//! `held`: the batches that wait for an operator.

use std::{process::ExitCode, time::Duration};

use clap::Args;
use grid_batch_client::given;
use grid_batch_core::ServiceId;
use serde_json::Value;

use crate::commands::{
    arguments::{ReadArgs, parse_duration},
    failure::Failure,
    operator::{ServiceSelection, print_wrapped},
    print::print_stdout,
    remote::{Server, age, elapsed, field, position, state_text},
};

/// Lists the batches that are held for an operator, and why
///
/// Each with its service, the first characters of its id, attempt, state, age, how many batches wait behind it, and the
/// reason. Needs only read permission.
#[derive(Debug, Args)]
pub(crate) struct HeldArgs {
    /// Only batches of this service; * stands for any characters
    #[arg(long, value_name = "PATTERN")]
    service: Option<ServiceSelection>,
    /// Only batches held for longer than this, such as 2h
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    older_than: Option<Duration>,
    #[command(flatten)]
    read: ReadArgs,
}

pub(crate) fn run(args: &HeldArgs) -> Result<ExitCode, Failure> {
    let server = Server::to_read(&args.read.source)?;
    let held = read(&server, args)?;
    Ok(args.read.output.show_list("batches", &held, || {
        held.iter().for_each(print);
        let is_all = args.service.is_none() && args.older_than.is_none();
        print_count(held.len(), is_all, &server.place());
    }))
}

/// The selected held batches, the oldest first, each with the number of batches before and behind it.
fn read(server: &Server, args: &HeldArgs) -> Result<Vec<Value>, Failure> {
    let service = args.service.as_ref().and_then(ServiceSelection::one);
    let filters = given([
        ("held", Some("true")),
        ("order", Some("oldest")),
        ("service_id", service.map(ServiceId::as_str)),
    ]);
    let (mut batches, _) = server.read_list("/v1/batches", &filters, usize::MAX)?;
    batches.retain(|batch| args.selects(batch));
    for batch in &mut batches {
        let (service, id) = (field(batch, "service_id"), field(batch, "id"));
        // It may have ended, or been removed, since it was listed.
        if let Ok(explained) = server.client.explain_batch(&id.parse()?, Some(&service)) {
            let (ahead, behind) = position(&explained);
            batch["ahead"] = ahead.into();
            batch["behind"] = behind.into();
        }
    }
    Ok(batches)
}

fn print(batch: &Value) {
    let (service, id) = (field(batch, "service_id"), field(batch, "id"));
    print_stdout(format_args!("{service} {id:.32}"));
    let (attempts, state, held) = (field(batch, "attempts"), state_text(batch), &batch["held"]);
    let mut facts = format!("attempt {attempts}, {state}, held {} ago", age(held, "since"));
    if batch["ahead"].as_u64().is_some_and(|ahead| ahead > 0) {
        facts.push_str(&format!(", {} before it", field(batch, "ahead")));
    }
    if !batch["behind"].is_null() {
        facts.push_str(&format!(", {} behind it", field(batch, "behind")));
    }
    print_wrapped("    ", &facts);
    let (reason, error) = (field(held, "reason"), field(batch, "last_error"));
    // A reason may end with the error already.
    let more = if reason.contains(&error) { String::new() } else { format!(" ({error})") };
    print_wrapped("    ", &format!("{reason}{more}"));
}

fn print_count(count: usize, is_all: bool, place: &str) {
    match (count, is_all) {
        (0, true) => print_stdout(format_args!("nothing is held{place}")),
        (0, false) => print_stdout(format_args!("nothing that is held matches{place}")),
        (1, _) => print_stdout(format_args!("1 batch is held{place}")),
        (count, _) => print_stdout(format_args!("{count} batches are held{place}")),
    }
}

impl HeldArgs {
    fn selects(&self, batch: &Value) -> bool {
        self.service.as_ref().is_none_or(|pattern| pattern.is_of(batch))
            && self.older_than.is_none_or(|age| elapsed(&batch["held"], "since") > Some(age))
    }
}
