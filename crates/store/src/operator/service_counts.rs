use diesel::{
    dsl::{count, count_star, not},
    prelude::*,
};
use grid_batch_core::DltStatus;

use crate::sql::{Store, StoreError, query::single_count, schema::lanes};

/// How many services have open batches, and how many of them are in trouble.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ServiceCounts {
    /// Services with open batches.
    pub open: u64,
    /// Services whose batch is held for an operator.
    pub held: u64,
    /// Services whose batch is not held and has an error: its last attempt, or what followed, failed.
    pub failing: u64,
}

pub(crate) fn service_counts(store: &Store) -> Result<ServiceCounts, StoreError> {
    let open = || lanes::table.filter(lanes::busy);
    let mut connection = store.pools.read()?;
    let all: Vec<(i64, i64)> = connection
        .load_query("service_counts", open().select((count_star(), count(lanes::held_at))))?;
    // The error of a batch that the ledger has by now is past.
    let not_at_ledger = lanes::dlt_status.is_null().or(lanes::dlt_status
        .ne(DltStatus::Pending.as_str())
        .and(lanes::dlt_status.ne(DltStatus::Valid.as_str())));
    // A batch behind a closed gate has no failed attempt.
    let is_delayed = lanes::dlt_status.eq(DltStatus::Delayed.as_str());
    let has_error =
        lanes::last_error.is_not_null().and(lanes::dlt_status.is_null().or(not(is_delayed)));
    let has_failed = lanes::delays.gt(0).or(has_error);
    let failing = open().filter(lanes::held_at.is_null()).filter(not_at_ledger).filter(has_failed);
    let failing = failing.select(count_star());
    let failing: Vec<i64> = connection.load_query("failing_services", failing)?;
    let number = |count: i64| u64::try_from(count).map_err(StoreError::corrupt);
    let (open, held) = all.first().copied().unwrap_or_default();
    Ok(ServiceCounts { open: number(open)?, held: number(held)?, failing: single_count(&failing)? })
}
