use std::collections::BTreeMap;

use diesel::{
    QueryableByName,
    sql_types::{BigInt, Binary, Nullable, Text},
};
use grid_batch_core::{ServiceId, Timestamp};
use grid_batch_withdrawals::{
    GasAdminQueue, LastFailure, PaymentBudget, PaymentLimits, PoolSum, WithdrawalState,
};

use super::{
    heads::{Head, load_heads},
    rows::{whole, withdrawal_id},
};
use crate::{
    batch::sums_of_day,
    sql::{
        Connection, Statement, Store, StoreError,
        rows::{service_id, service_rows},
    },
};

/// The open withdrawals of these gas admins, and what failed last. The number of rows that are read does
/// not depend on how many withdrawals there are.
pub(crate) fn gas_admin_queues(
    store: &Store,
    services: &[ServiceId],
) -> Result<Vec<GasAdminQueue>, StoreError> {
    store.pools.read()?.snapshot(|connection| {
        let mut queues = empty_queues(services);
        count_open(connection, services, &mut queues)?;
        count_heads(connection, &mut queues)?;
        add_oldest(connection, services, &mut queues)?;
        add_last_failures(connection, services, &mut queues)?;
        Ok(queues.into_values().collect())
    })
}

/// What was scheduled from each of these pools in the last 24 hours.
pub(crate) fn pool_sums(store: &Store, pools: &[&str]) -> Result<Vec<PoolSum>, StoreError> {
    let now = store.now();
    let mut sums = sums_of_day(&mut *store.pools.read()?, pools, now)?;
    let sum = |pool: &&str| PoolSum {
        pool: (*pool).to_owned(),
        amount: sums.remove(*pool).unwrap_or_default(),
    };
    Ok(pools.iter().map(sum).collect())
}

/// What the payment limits leave now.
pub(crate) fn payment_budget(store: &Store) -> Result<PaymentBudget, StoreError> {
    let limits = PaymentLimits::clone(&store.payment_limits);
    let pools: Vec<&str> = limits.day.keys().map(String::as_str).collect();
    let scheduled = sums_of_day(&mut *store.pools.read()?, &pools, store.now())?;
    Ok(PaymentBudget { limits, scheduled })
}

type Queues = BTreeMap<ServiceId, GasAdminQueue>;

fn empty_queues(services: &[ServiceId]) -> Queues {
    let empty = |service_id: &ServiceId| {
        let queue = GasAdminQueue {
            service_id: service_id.clone(),
            open: 0,
            waiting: 0,
            in_progress: 0,
            parked: 0,
            held: 0,
            oldest_scheduled_at: None,
            last_error: None,
            last_failures: Vec::new(),
        };
        (service_id.clone(), queue)
    };
    services.iter().map(empty).collect()
}

fn count_open(
    connection: &mut Connection,
    services: &[ServiceId],
    queues: &mut Queues,
) -> Result<(), StoreError> {
    let statement = Statement::new(
        connection.dialect(),
        "-- open_of_gas_admins
         select v.service_id, v.added - (
             select cast(coalesce(sum(s.ended), 0) as bigint) from lanes s
             where s.service_id = v.service_id) as open
         from {x} join services v on v.service_id = x.service_id",
    )
    .rows(service_rows(services));
    for row in connection.load::<OpenRow>(&statement)? {
        if let Some(queue) = queues.get_mut(&service_id(&row.service_id)?) {
            queue.open = whole(row.open)?;
            queue.waiting = queue.open;
        }
    }
    Ok(())
}

/// Counts the withdrawals that do not only wait for earlier ones, as lists show them.
fn count_heads(connection: &mut Connection, queues: &mut Queues) -> Result<(), StoreError> {
    for Head { service_id: of, state, .. } in load_heads(connection)? {
        let Some(queue) = queues.get_mut(&service_id(&of)?) else { continue };
        let count = match state {
            WithdrawalState::Scheduled => continue,
            WithdrawalState::Held => &mut queue.held,
            WithdrawalState::Parked => &mut queue.parked,
            _ => &mut queue.in_progress,
        };
        *count += 1;
        queue.waiting = queue.waiting.saturating_sub(1);
    }
    Ok(())
}

/// Adds when the oldest withdrawals were scheduled, and their last errors.
fn add_oldest(
    connection: &mut Connection,
    services: &[ServiceId],
    queues: &mut Queues,
) -> Result<(), StoreError> {
    let statement = Statement::new(
        connection.dialect(),
        "-- lanes_of_gas_admins
         select s.service_id, s.created_at, s.last_error
         from {x} join lanes s on s.service_id = x.service_id
         where s.batch_seq is not null order by s.service_id, s.created_at",
    )
    .rows(service_rows(services));
    for row in connection.load::<OldestRow>(&statement)? {
        if let Some(queue) = queues.get_mut(&service_id(&row.service_id)?)
            && queue.oldest_scheduled_at.is_none()
        {
            queue.oldest_scheduled_at = Some(Timestamp::from_micros(row.created_at));
            queue.last_error = row.last_error;
        }
    }
    Ok(())
}

fn add_last_failures(
    connection: &mut Connection,
    services: &[ServiceId],
    queues: &mut Queues,
) -> Result<(), StoreError> {
    let statement = Statement::new(
        connection.dialect(),
        "-- last_failures
         select f.service_id, f.pool, f.failed_at, w.withdrawal_id, r.error_message as reason
         from {x} join last_failures f on f.service_id = x.service_id
             join withdrawals w on w.seq = f.withdrawal_seq
             left join transaction_receipts r on r.batch_seq = f.batch_seq and r.position = 0
         order by f.service_id, f.pool",
    )
    .rows(service_rows(services));
    for row in connection.load::<FailureRow>(&statement)? {
        if let Some(queue) = queues.get_mut(&service_id(&row.service_id)?) {
            queue.last_failures.push(row.into_failure()?);
        }
    }
    Ok(())
}

#[derive(QueryableByName)]
struct OpenRow {
    #[diesel(sql_type = Text)]
    service_id: String,
    #[diesel(sql_type = BigInt)]
    open: i64,
}

#[derive(QueryableByName)]
struct OldestRow {
    #[diesel(sql_type = Text)]
    service_id: String,
    #[diesel(sql_type = BigInt)]
    created_at: i64,
    #[diesel(sql_type = Nullable<Text>)]
    last_error: Option<String>,
}

#[derive(QueryableByName)]
struct FailureRow {
    #[diesel(sql_type = Text)]
    service_id: String,
    #[diesel(sql_type = Text)]
    pool: String,
    #[diesel(sql_type = BigInt)]
    failed_at: i64,
    #[diesel(sql_type = Binary)]
    withdrawal_id: Vec<u8>,
    #[diesel(sql_type = Nullable<Text>)]
    reason: Option<String>,
}

impl FailureRow {
    fn into_failure(self) -> Result<LastFailure, StoreError> {
        Ok(LastFailure {
            pool: self.pool,
            withdrawal_id: withdrawal_id(&self.withdrawal_id)?,
            reason: self.reason,
            failed_at: Timestamp::from_micros(self.failed_at),
        })
    }
}
