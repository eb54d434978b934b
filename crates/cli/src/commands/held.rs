//! `held`: the batches that wait for an operator.

use std::{
    process::ExitCode,
    time::{Duration, SystemTime},
};

use clap::{Arg, ArgMatches, Command, builder::ValueParser};
use grid_batch_core::{BatchQueryStore, Hold, StoredBatch};
use humantime::{parse_duration, parse_rfc3339};
use serde_json::{Value, json};

use crate::commands::{
    failure::Failure,
    operator::{
        Database, ServiceSelection, ago, batch_json, json_flag, print_json, print_wrapped,
        short_id, wants_json,
    },
    print::print_stdout,
    remote::{self, Server, Source, age, field},
};

pub(crate) fn command() -> Command {
    Command::new("held")
        .about("Lists the batches that are held for an operator, and why")
        .long_about(
            "Lists the batches that are held for an operator: service, first characters of the id, attempt, \
             state, age, how many batches wait behind it, and the reason. Needs only the right to read.",
        )
        .arg(
            Arg::new("service")
                .long("service")
                .value_name("PATTERN")
                .value_parser(ValueParser::new(str::parse::<ServiceSelection>))
                .help("Only batches of this service; * stands for any characters"),
        )
        .arg(
            Arg::new("older-than")
                .long("older-than")
                .value_name("DURATION")
                .value_parser(ValueParser::new(parse_duration))
                .help("Only batches that have been held for longer, such as 2h"),
        )
        .arg(json_flag())
        .args(remote::flags_of_both())
}

/// A held batch of a service with other batches.
struct HeldBatch {
    batch: StoredBatch,
    ahead: u64,
    behind: u64,
}

pub(crate) fn run(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    match Source::of(matches) {
        Source::Server => list_of_server(matches),
        Source::Database => list_of_database(matches),
    }
}

fn list_of_server(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let server = Server::of(matches)?;
    let filter = Filter::new(matches);
    let service = filter.service.and_then(ServiceSelection::one);
    let service = service.map(|service| ("service_id", service.as_str()));
    let filters = [&[("held", "true")][..], &Vec::from_iter(service)].concat();
    let (mut batches, _) = server.read_list("/v1/batches", &filters, usize::MAX)?;
    batches.retain(|batch| {
        let service = field(batch, "service_id").parse().ok();
        let is_of =
            |pattern: &ServiceSelection| service.as_ref().is_some_and(|id| pattern.matches(id));
        filter.service.is_none_or(is_of) && filter.selects_age(held_for(batch))
    });
    if wants_json(matches) {
        print_json(&json!({ "batches": batches }));
        return Ok(ExitCode::SUCCESS);
    }
    for batch in &batches {
        let (service, id) = (field(batch, "service_id"), field(batch, "id"));
        print_stdout(format_args!("{service} {id:.32}"));
        let (attempts, state) = (field(batch, "attempts"), field(batch, "state"));
        let held = &batch["held"];
        print_wrapped(
            "    ",
            &format!("attempt {attempts}, {state}, held {} ago", age(held, "since")),
        );
        let (reason, error) = (field(held, "reason"), field(batch, "last_error"));
        print_wrapped("    ", &with_error(&reason, Some(&error)));
    }
    print_count(batches.len(), filter.is_empty(), "");
    Ok(ExitCode::SUCCESS)
}

/// How long a batch has been held, by the clock of this machine.
fn held_for(batch: &Value) -> Duration {
    let since = batch["held"]["since"].as_str().and_then(|text| parse_rfc3339(text).ok());
    since.and_then(|since| SystemTime::now().duration_since(since).ok()).unwrap_or_default()
}

fn print_count(count: usize, is_all: bool, place: &str) {
    match (count, is_all) {
        (0, true) => print_stdout(format_args!("nothing is held{place}")),
        (0, false) => print_stdout(format_args!("nothing that is held matches{place}")),
        (1, _) => print_stdout(format_args!("1 batch is held{place}")),
        (count, _) => print_stdout(format_args!("{count} batches are held{place}")),
    }
}

fn list_of_database(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let database = Database::to_read(matches)?;
    let filter = Filter::new(matches);
    let held = read(&database, &filter)?;
    if wants_json(matches) {
        print_document(&database, &held);
        return Ok(ExitCode::SUCCESS);
    }
    for held in &held {
        print_held(&database, held);
    }
    print_count(held.len(), filter.is_empty(), &format!(" in {}", database.name()));
    Ok(ExitCode::SUCCESS)
}

/// Which held batches are listed.
struct Filter<'a> {
    service: Option<&'a ServiceSelection>,
    older_than: Option<Duration>,
}

impl<'a> Filter<'a> {
    fn new(matches: &'a ArgMatches) -> Self {
        Self {
            service: matches.get_one("service"),
            older_than: matches.get_one("older-than").copied(),
        }
    }

    fn is_empty(&self) -> bool {
        self.service.is_none() && self.older_than.is_none()
    }

    fn selects(&self, database: &Database, batch: &StoredBatch, hold: &Hold) -> bool {
        self.service.is_none_or(|pattern| pattern.matches(&batch.service_id))
            && self.selects_age(database.now().since(hold.since))
    }

    fn selects_age(&self, held_for: Duration) -> bool {
        self.older_than.is_none_or(|age| held_for > age)
    }
}

/// The batches in lanes by service, then those that wait behind others.
fn read(database: &Database, filter: &Filter<'_>) -> Result<Vec<HeldBatch>, Failure> {
    const PAGE: usize = 500;
    let store = &database.store;
    let mut batches = Vec::new();
    let mut after = None;
    loop {
        let page = store.held_batches(after.as_ref(), PAGE)?;
        after = page.last().map(|last| last.service_id.clone());
        let is_last = page.len() < PAGE;
        batches.extend(page);
        if is_last {
            break;
        }
    }
    batches.extend(store.waiting_holds()?);
    batches
        .into_iter()
        .filter(|batch| {
            batch.held.as_ref().is_some_and(|hold| filter.selects(database, batch, hold))
        })
        .map(|batch| {
            let ahead = store.ahead(&batch.service_id, &[batch.created_at])?.pop().flatten();
            let ahead = ahead.map_or(0, |ahead| ahead.count);
            let behind = store.depth(&batch.service_id)?.saturating_sub(ahead + 1);
            Ok(HeldBatch { batch, ahead, behind })
        })
        .collect()
}

fn print_held(database: &Database, held: &HeldBatch) {
    let HeldBatch { batch, ahead, behind } = held;
    let Some(hold) = &batch.held else { return };
    print_stdout(format_args!("{} {}", batch.service_id, short_id(&batch.batch_id)));
    let mut facts = format!(
        "attempt {}, {}, held {}",
        batch.progress.attempts,
        batch.progress.state,
        ago(hold.since, database.now())
    );
    if *ahead > 0 {
        facts.push_str(&format!(", {ahead} before it"));
    }
    facts.push_str(&format!(", {behind} behind it"));
    print_wrapped("    ", &facts);
    print_wrapped("    ", &with_error(&hold.reason, batch.last_error.as_deref()));
}

/// Why a batch is held, with its last error. A reason may end with that already.
fn with_error(reason: &str, error: Option<&str>) -> String {
    match error.filter(|error| !reason.contains(error)) {
        Some(error) => format!("{reason} ({error})"),
        None => reason.to_owned(),
    }
}

fn print_document(database: &Database, held: &[HeldBatch]) {
    let batches = held.iter().map(|HeldBatch { batch, ahead, behind }| {
        let mut object = batch_json(batch);
        object["ahead"] = (*ahead).into();
        object["behind"] = (*behind).into();
        object
    });
    print_json(&json!({
        "database": database.name(),
        "read_at": database.now().rfc3339(),
        "batches": batches.collect::<Vec<_>>(),
    }));
}
