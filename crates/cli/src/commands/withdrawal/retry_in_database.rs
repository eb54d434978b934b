//! Schedules failed withdrawals again, in the database.

use std::{process::ExitCode, time::Duration};

use clap::{ArgMatches, Command};
use grid_batch_core::ServiceId;
use grid_batch_withdrawals::{FailedFilter, FailedWithdrawal, FailedWithdrawals};
use serde_json::{Value, json};

use super::retry::{FILTERS, Retried, UNKNOWN_LIMITS, filter_flags, group, limit, print, text};
use crate::commands::{
    failure::Failure,
    flags,
    operator::{Database, json_flag},
};

/// `retry-withdrawals`: the command for a database alone, for scripts.
pub(crate) fn retry_withdrawals_command() -> Command {
    Command::new("retry-withdrawals")
        .about("The same as `withdrawal retry` with filters and a database")
        .args(filter_flags())
        .group(group(&FILTERS))
        .arg(json_flag())
        .args(flags::of_database())
}

pub(crate) fn retry_in_database(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let is_confirmed = matches.get_flag("yes");
    let database = Database::to_schedule(matches, is_confirmed)?;
    if is_confirmed && !database.knows_pools {
        return Err(Failure::configuration(UNKNOWN_LIMITS));
    }
    let since = matches.get_one::<Duration>("since");
    let filter = FailedFilter {
        pool: text(matches, "pool"),
        service_id: matches.get_one::<ServiceId>("service").cloned(),
        failed_since: since.map(|age| database.now().minus(*age)),
        reason_contains: text(matches, "reason"),
    };
    let found = if is_confirmed {
        filter.retry(&database.store, limit(matches))?
    } else {
        filter.find(&database.store, limit(matches))?
    };
    let retried = Retried::of_database(found, database.knows_pools);
    print(matches, &retried, "database", &database.name());
    Ok(ExitCode::SUCCESS)
}

impl Retried {
    fn of_database(found: FailedWithdrawals, limits_are_known: bool) -> Self {
        let refused = found.refused.iter().map(|(failed, error)| {
            json!({"id": failed.withdrawal.id.to_string(), "reason": error.to_string()})
        });
        Self {
            refused: refused.collect(),
            refused_count: found.refused_count,
            limits_are_known,
            withdrawals: found.withdrawals.iter().map(failed_json).collect(),
            has_more: found.has_more,
        }
    }
}

fn failed_json(failed: &FailedWithdrawal) -> Value {
    let FailedWithdrawal { withdrawal, failed_at, fail_reason } = failed;
    json!({
        "id": withdrawal.id.to_string(),
        "service_id": withdrawal.service_id.as_str(),
        "pool": withdrawal.pool,
        "beneficiary": withdrawal.beneficiary,
        "amount": withdrawal.amount,
        "failed_at": failed_at.rfc3339(),
        "fail_reason": fail_reason,
    })
}
