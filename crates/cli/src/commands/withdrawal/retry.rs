//! `withdrawal retry`: schedules failed withdrawals again, at a running server or in the database.

use std::{
    process::ExitCode,
    time::{Duration, SystemTime},
};

use clap::{ArgGroup, Args, value_parser};
use grid_batch_core::ServiceId;
use grid_batch_core::queries::ItemIdPrefix;
use grid_batch_store::Store;
use humantime::format_rfc3339_seconds;
use serde_json::{Value, json};

use crate::commands::{
    arguments::{ActionArgs, parse_duration},
    failure::Failure,
    operator::print_wrapped,
    print::print_stdout,
    remote::{self, Server, Source, WITHDRAWALS, age, entries, field},
};

const UNKNOWN_LIMITS: &str = "the configuration has no pools.*.gas_admin, so the payment limits of the pools are not \
                              known; give the server's configuration with --config";

/// The arguments that select failed withdrawals.
const FILTERS: [&str; 5] = ["pool", "service", "since", "failed_with", "all"];

/// Schedules failed withdrawals again
///
/// Those are the ones that are named, or that filters select, the oldest first. If the command is interrupted, run it
/// again: it continues. In a database, it needs the server's configuration (--config), which has the payment limits,
/// except for a dry run; a running server finds the withdrawals within a second.
#[derive(Debug, Args)]
#[command(group = selection().arg("withdrawal"))]
pub(crate) struct RetryArgs {
    /// Ids of withdrawals, or at least their first 8 digits
    #[arg(conflicts_with_all = FILTERS)]
    withdrawal: Vec<ItemIdPrefix>,
    #[command(flatten)]
    filter: FilterArgs,
}

/// The same as `withdrawal retry` with filters
// For scripts.
#[cfg(feature = "evm")]
#[derive(Debug, Args)]
#[command(group = selection())]
pub(crate) struct FilteredArgs {
    #[command(flatten)]
    pub(crate) filter: FilterArgs,
}

fn selection() -> ArgGroup {
    ArgGroup::new("selection").args(FILTERS).required(true).multiple(true)
}

#[derive(Debug, Args)]
pub(crate) struct FilterArgs {
    /// Only withdrawals from this pool, as the server shows its address
    #[arg(long, value_name = "ADDRESS")]
    pool: Option<String>,
    /// Only withdrawals of this gas admin's service
    #[arg(long, value_name = "ID")]
    service: Option<ServiceId>,
    /// Only withdrawals that failed within this time, such as 2h
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    since: Option<Duration>,
    /// Only withdrawals that failed for a reason that contains this text
    #[arg(long, value_name = "TEXT")]
    failed_with: Option<String>,
    /// All failed withdrawals
    #[arg(long)]
    all: bool,
    /// Maximum number of withdrawals
    #[arg(long, value_name = "NUMBER", default_value = "1000", value_parser = value_parser!(u32).range(1..))]
    limit: u32,
    #[command(flatten)]
    action: ActionArgs,
}

pub(super) fn run(RetryArgs { withdrawal, filter }: &RetryArgs) -> Result<ExitCode, Failure> {
    if withdrawal.is_empty() {
        return retry_filtered(filter);
    }
    let (server, _) = open(filter)?;
    let ActionArgs { asked, output, .. } = &filter.action;
    Ok(WITHDRAWALS.act_on_each(withdrawal, "retry", &server, asked, output))
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
pub(crate) fn retry_filtered(args: &FilterArgs) -> Result<ExitCode, Failure> {
    const MOST_OF_REQUEST: usize = 1_000;
    let ActionArgs { asked, output, .. } = &args.action;
    let (server, limits_are_known) = open(args)?;
    let mut retried = Retried { limits_are_known, ..Retried::default() };
    let limit = args.limit as usize;
    loop {
        let rest = limit - retried.withdrawals.len();
        let fields = json!({
            "pool": args.pool,
            "service_id": args.service.as_ref().map(ServiceId::as_str),
            "failed_since": args.failed_since(),
            "reason_contains": args.failed_with,
            "limit": rest.min(MOST_OF_REQUEST),
        });
        let answer = server.act(asked, "/withdrawals/retry", &[], fields);
        retried.add(&answer.map_err(Server::failed)?);
        // A second request of a dry run would list the same withdrawals.
        let is_complete = !retried.has_more || retried.withdrawals.len() >= limit;
        if is_complete || asked.is_dry_run() {
            break;
        }
    }
    let place = server.client.name();
    let is_done = !asked.is_dry_run();
    let json = json!({
        "retried": is_done,
        "has_more": retried.has_more,
        "limits_are_known": retried.limits_are_known,
        "refused": retried.refused,
        "refused_count": retried.refused_count,
        "withdrawals": retried.withdrawals,
    });
    Ok(output.show(&json, || print(&retried, is_done, &place)))
}

/// A server, or the database with the payment limits of the configuration, and whether the configuration has limits.
fn open(args: &FilterArgs) -> Result<(Server, bool), Failure> {
    let ActionArgs { asked, source, .. } = &args.action;
    remote::check_withdrawals(source)?;
    if Source::of(source) == Source::Server {
        return Ok((Server::of(&source.server)?, true));
    }
    let config = source.settings.load()?.with_payment_limits()?;
    let knows_limits = config.has_pools();
    if !asked.is_dry_run() && !knows_limits {
        return Err(Failure::configuration(UNKNOWN_LIMITS));
    }
    Ok((Server::over(config, Store::open_for_command)?, knows_limits))
}

impl FilterArgs {
    /// The earliest time of failure that is selected; with `--all`, the beginning of time.
    fn failed_since(&self) -> Option<String> {
        let since = match self.since {
            Some(age) => SystemTime::now().checked_sub(age).unwrap_or(SystemTime::UNIX_EPOCH),
            None if self.all => SystemTime::UNIX_EPOCH,
            None => return None,
        };
        Some(format_rfc3339_seconds(since).to_string())
    }
}

impl Retried {
    fn add(&mut self, answer: &Value) {
        self.withdrawals.extend_from_slice(entries(answer, "data"));
        // Each request reports all withdrawals that a limit refuses, including those of the previous request.
        self.refused = entries(answer, "refused").to_vec();
        self.refused_count = answer["refused_count"].as_u64().unwrap_or_default();
        self.has_more = answer["has_more"].as_bool().unwrap_or(false);
    }
}

/// Prints what was found, and where.
fn print(retried: &Retried, is_done: bool, place: &str) {
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
