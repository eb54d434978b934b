//! `withdrawal retry`: schedules failed withdrawals again, at a running server or in the database.

use std::{
    process::ExitCode,
    time::{Duration, SystemTime},
};

use clap::{Arg, ArgAction, ArgGroup, ArgMatches, Command, builder::ValueParser, value_parser};
use grid_batch_core::ServiceId;
use grid_batch_store::Store;
use humantime::{format_rfc3339_seconds, parse_duration};
use serde_json::{Value, json};

use super::{cancel::act_on_each, name::withdrawals_argument};
use crate::commands::{
    failure::Failure,
    flags,
    operator::{
        dry_run_flag, is_dry_run, json_flag, print_json, print_wrapped, reason_flag, wants_json,
    },
    print::print_stdout,
    remote::{self, Server, Source, age, field},
};

const DEFAULT_LIMIT: &str = "1000";

const UNKNOWN_LIMITS: &str = "the configuration has no pools.*.gas_admin, so the payment limits of the pools are not \
                              known; give the server's configuration with --config";

/// The filters that select failed withdrawals.
const FILTERS: [&str; 5] = ["pool", "service", "since", "failed-with", "all"];

pub(super) fn command() -> Command {
    Command::new("retry")
        .about("Schedules failed withdrawals again")
        .long_about(
            "Schedules failed withdrawals again: those that are named, or those that filters select, the oldest \
             first. If the command is interrupted, run it again: it continues. In a database, it needs the \
             server's configuration (--config), which has the payment limits, except for a dry run; a running \
             server finds the withdrawals within a second.",
        )
        .arg(withdrawals_argument().conflicts_with_all(FILTERS))
        .args(filter_flags())
        .group(group(["withdrawal"].iter().chain(&FILTERS)))
        .arg(json_flag())
        .args(remote::flags_of_both())
}

fn group<'a>(names: impl IntoIterator<Item = &'a &'static str>) -> ArgGroup {
    ArgGroup::new("selection").args(names.into_iter().copied()).required(true).multiple(true)
}

fn filter_flags() -> [Arg; 8] {
    [
        Arg::new("pool")
            .long("pool")
            .value_name("ADDRESS")
            .help("Only withdrawals from this pool, as the server shows its address"),
        Arg::new("service")
            .long("service")
            .value_name("ID")
            .value_parser(value_parser!(ServiceId))
            .help("Only withdrawals of this gas admin's service"),
        Arg::new("since")
            .long("since")
            .value_name("DURATION")
            .value_parser(ValueParser::new(parse_duration))
            .help("Only withdrawals that failed within this time, such as 2h"),
        Arg::new("failed-with")
            .long("failed-with")
            .value_name("TEXT")
            .help("Only withdrawals that failed for a reason that contains this text"),
        Arg::new("all").long("all").action(ArgAction::SetTrue).help("All failed withdrawals"),
        Arg::new("limit")
            .long("limit")
            .value_name("NUMBER")
            .default_value(DEFAULT_LIMIT)
            .value_parser(value_parser!(u32).range(1..))
            .help("Maximum number of withdrawals"),
        reason_flag(),
        dry_run_flag(),
    ]
}

pub(super) fn run(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    if matches.contains_id("withdrawal") {
        let (server, _) = open(matches)?;
        return act_on_each(matches, &server, "retry");
    }
    retry_filtered(matches)
}

/// `retry-withdrawals`: the command with filters only, for scripts.
#[cfg(feature = "evm")]
pub(crate) fn retry_withdrawals_command() -> Command {
    Command::new("retry-withdrawals")
        .about("The same as `withdrawal retry` with filters")
        .args(filter_flags())
        .group(group(&FILTERS))
        .arg(json_flag())
        .args(remote::flags_of_both())
}

/// The withdrawals that were scheduled again, or would be.
#[derive(Default)]
struct Retried {
    /// Each as an object with `id`, `pool`, `beneficiary`, `amount`, `failed_at` and `fail_reason`.
    withdrawals: Vec<Value>,
    /// Those that a payment limit excludes, as `id` and `reason`.
    refused: Vec<Value>,
    /// The number of withdrawals that a payment limit excludes; not all of them are named.
    refused_count: u64,
    /// Whether the payment limits of the pools are known.
    limits_are_known: bool,
    has_more: bool,
}

/// Asks for those that the filters select, in several requests.
pub(crate) fn retry_filtered(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    const MOST_OF_REQUEST: usize = 1_000;
    let (server, limits_are_known) = open(matches)?;
    let mut retried = Retried { limits_are_known, ..Retried::default() };
    loop {
        let rest = limit(matches) - retried.withdrawals.len();
        let fields = json!({
            "pool": text(matches, "pool"),
            "service_id": matches.get_one::<ServiceId>("service").map(ServiceId::as_str),
            "failed_since": failed_since(matches),
            "reason_contains": text(matches, "failed-with"),
            "limit": rest.min(MOST_OF_REQUEST),
        });
        let answer = server.act(matches, "/withdrawals/retry", &[], without_nulls(&fields));
        retried.add(&answer.map_err(Server::failed)?);
        // A second request of a dry run would list the same withdrawals.
        if !retried.has_more || is_dry_run(matches) || retried.withdrawals.len() >= limit(matches) {
            break;
        }
    }
    print(matches, &retried, &server.client.name());
    Ok(ExitCode::SUCCESS)
}

/// A server, or the database with the payment limits of the configuration, and whether the configuration has limits.
fn open(matches: &ArgMatches) -> Result<(Server, bool), Failure> {
    remote::check_withdrawals(matches)?;
    if Source::of(matches) == Source::Server {
        return Ok((Server::of(matches)?, true));
    }
    let config = flags::load(matches)?.with_payment_limits()?;
    let knows_limits = config.has_pools();
    if !is_dry_run(matches) && !knows_limits {
        return Err(Failure::configuration(UNKNOWN_LIMITS));
    }
    Ok((Server::over(config, Store::open_for_command)?, knows_limits))
}

/// The earliest time of failure that is selected; with `--all`, the beginning of time.
fn failed_since(matches: &ArgMatches) -> Option<String> {
    let since = match matches.get_one::<Duration>("since") {
        Some(age) => SystemTime::now().checked_sub(*age).unwrap_or(SystemTime::UNIX_EPOCH),
        None if matches.get_flag("all") => SystemTime::UNIX_EPOCH,
        None => return None,
    };
    Some(format_rfc3339_seconds(since).to_string())
}

fn without_nulls(fields: &Value) -> Value {
    let given = fields.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null());
    given.map(|(name, value)| (name.clone(), value.clone())).collect()
}

fn text(matches: &ArgMatches, name: &str) -> Option<String> {
    matches.get_one::<String>(name).cloned()
}

fn limit(matches: &ArgMatches) -> usize {
    matches.get_one::<u32>("limit").copied().unwrap_or(1) as usize
}

impl Retried {
    fn add(&mut self, answer: &Value) {
        let list = |name: &str| answer[name].as_array().cloned().unwrap_or_default();
        self.withdrawals.extend(list("data"));
        // Each request reports all withdrawals that a limit refuses, including those of the previous request.
        self.refused = list("refused");
        self.refused_count = answer["refused_count"].as_u64().unwrap_or_default();
        self.has_more = answer["has_more"].as_bool().unwrap_or(false);
    }
}

/// Prints what was found, and where.
fn print(matches: &ArgMatches, retried: &Retried, place: &str) {
    let is_done = !is_dry_run(matches);
    if wants_json(matches) {
        return print_json(&json!({
            "retried": is_done,
            "has_more": retried.has_more,
            "limits_are_known": retried.limits_are_known,
            "refused": retried.refused,
            "refused_count": retried.refused_count,
            "withdrawals": retried.withdrawals,
        }));
    }
    for failed in &retried.withdrawals {
        print_stdout(format_args!("{} {}", field(failed, "id"), field(failed, "pool")));
        let (amount, beneficiary) = (field(failed, "amount"), field(failed, "beneficiary"));
        let (age, reason) = (age(failed, "failed_at"), field(failed, "fail_reason"));
        print_wrapped("    ", &format!("{amount} to {beneficiary}, failed {age} ago: {reason}"));
    }
    for refused in &retried.refused {
        print_stdout(format_args!("{} is not scheduled again", field(refused, "id")));
        print_wrapped("    ", &field(refused, "reason"));
    }
    let named = u64::try_from(retried.refused.len()).unwrap_or(u64::MAX);
    if retried.refused_count > named {
        let left_out = retried.refused_count - named;
        print_stdout(format_args!("a payment limit refuses {left_out} more"));
    }
    if !retried.limits_are_known {
        print_stdout(UNKNOWN_LIMITS);
    }
    let count = retried.withdrawals.len();
    match (count, is_done) {
        (0, _) if retried.refused_count > 0 => print_stdout(format_args!(
            "a payment limit refuses all failed withdrawals that match in {place}"
        )),
        (0, _) => print_stdout(format_args!("no failed withdrawal matches in {place}")),
        (_, true) => {
            print_stdout(format_args!("{count} withdrawals are scheduled again in {place}"))
        }
        (_, false) => print_stdout(format_args!(
            "{count} failed withdrawals match in {place}; nothing changed"
        )),
    }
    if retried.has_more {
        print_stdout("more withdrawals match than are shown here");
    }
}
