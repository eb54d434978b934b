//! `held`: the batches that wait for an operator.

use std::{
    process::ExitCode,
    time::{Duration, SystemTime},
};

use clap::{Arg, ArgMatches, Command, builder::ValueParser};
use humantime::{parse_duration, parse_rfc3339};
use serde_json::{Value, json};

use crate::commands::{
    failure::Failure,
    operator::{ServiceSelection, json_flag, print_json, print_wrapped, wants_json},
    print::print_stdout,
    remote::{self, Server, age, field, position, state_text},
};

pub(crate) fn command() -> Command {
    Command::new("held")
        .about("Lists the batches that are held for an operator, and why")
        .long_about(
            "Lists the batches that are held for an operator: service, first characters of the id, attempt, \
             state, age, how many batches wait behind it, and the reason. Needs only read permission.",
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
                .help("Only batches held for longer than this, such as 2h"),
        )
        .arg(json_flag())
        .args(remote::flags_of_both())
}

pub(crate) fn run(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let server = Server::to_read(matches)?;
    let filter = Filter::new(matches);
    let held = read(&server, &filter)?;
    if wants_json(matches) {
        print_json(&json!({ "batches": held }));
        return Ok(ExitCode::SUCCESS);
    }
    held.iter().for_each(print);
    print_count(held.len(), filter.is_empty(), &server.place());
    Ok(ExitCode::SUCCESS)
}

/// The selected held batches, the oldest first, each with the number of batches before and behind it.
fn read(server: &Server, filter: &Filter<'_>) -> Result<Vec<Value>, Failure> {
    let service = filter.service.and_then(ServiceSelection::one);
    let service = service.map(|service| ("service_id", service.as_str()));
    let filters = [&[("held", "true"), ("order", "oldest")][..], &Vec::from_iter(service)].concat();
    let (mut batches, _) = server.read_list("/v1/batches", &filters, usize::MAX)?;
    batches.retain(|batch| filter.selects(batch));
    for batch in &mut batches {
        let (service, id) = (field(batch, "service_id"), field(batch, "id"));
        // It may have ended, or been removed, since it was listed.
        if let Ok(explained) = server.client.batch(&id.parse()?, Some("explain"), Some(&service)) {
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

    fn selects(&self, batch: &Value) -> bool {
        self.service.is_none_or(|pattern| pattern.is_of(batch))
            && self.older_than.is_none_or(|age| held_for(batch) > age)
    }
}

/// How long a batch has been held, by the clock of this machine.
fn held_for(batch: &Value) -> Duration {
    let since = batch["held"]["since"].as_str().and_then(|text| parse_rfc3339(text).ok());
    since.and_then(|since| SystemTime::now().duration_since(since).ok()).unwrap_or_default()
}
