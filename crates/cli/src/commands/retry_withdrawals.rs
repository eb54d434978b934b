//! `retry-withdrawals`: schedules failed withdrawals again.

use std::{process::ExitCode, time::Duration};

use clap::{Arg, ArgAction, ArgGroup, ArgMatches, Command, builder::ValueParser, value_parser};
use grid_batch_core::ServiceId;
use grid_batch_withdrawals::{FailedFilter, FailedWithdrawal, FailedWithdrawals};
use humantime::parse_duration;
use serde_json::json;

use crate::commands::{
    failure::Failure,
    flags,
    operator::{Database, ago, json_flag, print_json, print_wrapped, rfc3339, wants_json},
    print::print_stdout,
};

const DEFAULT_LIMIT: &str = "1000";

const UNKNOWN_LIMITS: &str = "the configuration has no evm.pools, so the payment limits of the pools are not \
                              known; give the server's configuration with --config";

pub(crate) fn command() -> Command {
    let filters = ["pool", "service", "since", "reason", "all"];
    Command::new("retry-withdrawals")
        .about("Schedules failed withdrawals again, the oldest first")
        .long_about(
            "Schedules failed withdrawals again, the oldest first, each as POST /withdrawals/ID/retry does. \
             Without --yes, it only lists them, and those that a payment limit refuses. It needs the \
             server's configuration, because that has the limits. A running server finds them within queue.poll_interval. If \
             the command is interrupted, run it again: it continues.",
        )
        .arg(
            Arg::new("pool").long("pool").value_name("ADDRESS").help(
                "Only withdrawals from this pool, as the server shows its address",
            ),
        )
        .arg(
            Arg::new("service")
                .long("service")
                .value_name("ID")
                .value_parser(value_parser!(ServiceId))
                .help("Only withdrawals of this gas admin's service"),
        )
        .arg(
            Arg::new("since")
                .long("since")
                .value_name("DURATION")
                .value_parser(ValueParser::new(parse_duration))
                .help("Only withdrawals that failed within this time, such as 2h"),
        )
        .arg(
            Arg::new("reason")
                .long("reason")
                .value_name("TEXT")
                .help("Only withdrawals whose reason contains this text"),
        )
        .arg(Arg::new("all").long("all").action(ArgAction::SetTrue).help("All that have failed"))
        .group(ArgGroup::new("filters").args(filters).required(true).multiple(true))
        .arg(
            Arg::new("limit")
                .long("limit")
                .value_name("NUMBER")
                .default_value(DEFAULT_LIMIT)
                .value_parser(value_parser!(u32).range(1..))
                .help("How many at most"),
        )
        .arg(
            Arg::new("yes")
                .long("yes")
                .action(ArgAction::SetTrue)
                .help("Schedules them again; without it, they are only listed"),
        )
        .arg(json_flag())
        .args(flags::of_database())
}

pub(crate) fn run(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let is_confirmed = matches.get_flag("yes");
    let database = match is_confirmed {
        true => Database::to_write(matches)?,
        false => Database::to_read(matches)?,
    };
    if is_confirmed && !database.knows_pools {
        return Err(Failure::configuration(UNKNOWN_LIMITS));
    }
    let filter = filter(matches, &database);
    let limit = matches.get_one::<u32>("limit").copied().unwrap_or(1) as usize;
    let found = match is_confirmed {
        true => filter.retry(&database.store, limit)?,
        false => filter.find(&database.store, limit)?,
    };
    if wants_json(matches) {
        print_document(&database, &found, is_confirmed);
    } else {
        print_text(&database, &found, is_confirmed);
    }
    Ok(ExitCode::SUCCESS)
}

fn filter(matches: &ArgMatches, database: &Database) -> FailedFilter {
    let since = matches.get_one::<Duration>("since");
    FailedFilter {
        pool: matches.get_one::<String>("pool").cloned(),
        service_id: matches.get_one::<ServiceId>("service").cloned(),
        failed_since: since.map(|age| database.now().minus(*age)),
        reason_contains: matches.get_one::<String>("reason").cloned(),
    }
}

fn print_text(database: &Database, found: &FailedWithdrawals, is_retried: bool) {
    for FailedWithdrawal { withdrawal, failed_at, fail_reason } in &found.withdrawals {
        print_stdout(format_args!("{} {}", withdrawal.id, withdrawal.pool));
        let failed = ago(*failed_at, database.now());
        let text = format!(
            "{} to {}, failed {failed}: {fail_reason}",
            withdrawal.amount, withdrawal.beneficiary
        );
        print_wrapped("    ", &text);
    }
    for (failed, error) in &found.refused {
        print_stdout(format_args!("{} is not scheduled again", failed.withdrawal.id));
        print_wrapped("    ", &error.to_string());
    }
    let named = u64::try_from(found.refused.len()).unwrap_or(u64::MAX);
    if found.refused_count > named {
        let left_out = found.refused_count - named;
        print_stdout(format_args!("a payment limit refuses {left_out} more"));
    }
    if !database.knows_pools {
        print_stdout(UNKNOWN_LIMITS);
    }
    let (count, name) = (found.withdrawals.len(), database.name());
    match (count, is_retried) {
        (0, _) if found.refused_count > 0 => print_stdout(format_args!(
            "a payment limit refuses all failed withdrawals that match in {name}"
        )),
        (0, _) => print_stdout(format_args!("no failed withdrawal matches in {name}")),
        (_, true) => {
            print_stdout(format_args!("{count} withdrawals are scheduled again in {name}"))
        }
        (_, false) => print_stdout(format_args!(
            "{count} failed withdrawals match in {name}; nothing changed: to schedule them again, add --yes"
        )),
    }
    if found.has_more {
        print_stdout("more withdrawals match than --limit allows");
    }
}

fn print_document(database: &Database, found: &FailedWithdrawals, is_retried: bool) {
    let withdrawals = found.withdrawals.iter().map(|failed| {
        let FailedWithdrawal { withdrawal, failed_at, fail_reason } = failed;
        json!({
            "id": withdrawal.id.to_string(),
            "service_id": withdrawal.service_id.as_str(),
            "pool": withdrawal.pool,
            "beneficiary": withdrawal.beneficiary,
            "amount": withdrawal.amount,
            "failed_at": rfc3339(*failed_at),
            "fail_reason": fail_reason,
        })
    });
    let refused = found.refused.iter().map(|(failed, error)| {
        json!({"id": failed.withdrawal.id.to_string(), "reason": error.to_string()})
    });
    print_json(&json!({
        "database": database.name(),
        "retried": is_retried,
        "has_more": found.has_more,
        "limits_are_known": database.knows_pools,
        "refused": refused.collect::<Vec<_>>(),
        "refused_count": found.refused_count,
        "withdrawals": withdrawals.collect::<Vec<_>>(),
    }));
}
