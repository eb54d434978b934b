//! The open withdrawals that do not only wait for earlier ones, and the numbers of open withdrawals of gas admins.

use std::collections::BTreeMap;

use diesel::{dsl::exists, prelude::*};
use grid_batch_core::{ServiceId, Timestamp};
use grid_batch_withdrawals::{GasAdminQueue, LastFailure, WithdrawalState};

use super::{
    rows::{whole, withdrawal_id},
    schema::{account_nonces, signed_transactions, withdrawals},
};
use crate::sql::{
    Connection, Statement, Store, StoreError, result_row,
    rows::{progress, service_id, service_rows},
    schema::{batches, lanes, waiting_holds},
};

/// A batch that is next or under way in its service, held, or signed ahead, or whose withdrawal waits for a
/// decision. All other open batches are scheduled.
pub(super) struct Head {
    pub(super) service_id: String,
    pub(super) batch_seq: i64,
    pub(super) state: WithdrawalState,
}

/// All heads, and all batches that are held or signed ahead. Their number is that of services with open batches, holds,
/// and transactions in flight.
pub(super) fn load_heads(connection: &mut Connection) -> Result<Vec<Head>, StoreError> {
    let in_lanes = lanes::table.filter(lanes::busy).select(WithdrawalHeadRow::as_select());
    let in_lanes: Vec<WithdrawalHeadRow> = connection.load_query("heads", in_lanes)?;
    // The condition makes PostgreSQL use the index. With an inner join, SQLite would read all batches.
    let held = waiting_holds::table
        .left_join(batches::table)
        .filter(waiting_holds::batch_seq.gt(0))
        .select((batches::service_id.nullable().assume_not_null(), waiting_holds::batch_seq));
    let held: Vec<(String, i64)> = connection.load_query("held_withdrawals", held)?;
    let mut heads = BTreeMap::new();
    for (service_id, batch_seq, has_outcome) in load_signed_ahead(connection)? {
        let state = WithdrawalState::of_signed_ahead(has_outcome);
        heads.insert(batch_seq, Head { service_id, batch_seq, state });
    }
    let without_event = load_without_event(connection)?;
    for (service_id, batch_seq) in held.into_iter().chain(without_event) {
        let state = WithdrawalState::Held;
        heads.insert(batch_seq, Head { service_id, batch_seq, state });
    }
    for lane in in_lanes {
        let Some(head) = lane.into_head()? else { continue };
        // A batch that was signed ahead is pending even before it is submitted.
        if head.state != WithdrawalState::Scheduled || !heads.contains_key(&head.batch_seq) {
            heads.insert(head.batch_seq, head);
        }
    }
    Ok(heads.into_values().collect())
}

/// The withdrawals about which an operator must decide whether they were made.
fn load_without_event(connection: &mut Connection) -> Result<Vec<(String, i64)>, StoreError> {
    // Every service id is greater than the empty text.
    let statement = Statement::new(
        "-- withdrawals_without_event
         select n.service_id, w.batch_seq
         from account_nonces n join withdrawals w on w.seq = n.withdrawal_seq
         join batches b on b.seq = w.batch_seq
         where n.service_id > ? and n.pool_withdrawal_id = '' and w.list_state = 'OPEN'
             and b.dlt_status is not null
         order by n.service_id, n.nonce",
    )
    .text("");
    connection.load_tuples(&statement)
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = lanes)]
struct WithdrawalHeadRow {
    service_id: String,
    batch_seq: Option<i64>,
    submitted: bool,
    dlt_status: Option<String>,
    attempts: i32,
    held_at: Option<i64>,
}

impl WithdrawalHeadRow {
    fn into_head(self) -> Result<Option<Head>, StoreError> {
        let Some(batch_seq) = self.batch_seq else { return Ok(None) };
        let progress = progress(self.submitted, self.dlt_status.as_deref(), self.attempts)?;
        let state = match self.held_at {
            Some(_) => WithdrawalState::Held,
            None => progress.state.into(),
        };
        Ok(Some(Head { service_id: self.service_id, batch_seq, state }))
    }
}

/// The batches of open withdrawals whose transactions were sent, from the head of each service on, with their services
/// and whether their outcome is known. There are few of them.
fn load_signed_ahead(connection: &mut Connection) -> Result<Vec<(String, i64, bool)>, StoreError> {
    let mut lowest: BTreeMap<String, i64> = BTreeMap::new();
    for (service_id, nonce) in load_head_nonces(connection)? {
        let of_service = lowest.entry(service_id).or_insert(nonce);
        *of_service = nonce.min(*of_service);
    }
    let mut signed = Vec::new();
    for (service_id, nonce) in lowest {
        let of_service = load_from(connection, &service_id, nonce)?.into_iter();
        signed.extend(
            of_service
                .map(|(batch_seq, outcome)| (service_id.clone(), batch_seq, outcome.is_some())),
        );
    }
    Ok(signed)
}

/// The nonces of the withdrawals that are heads, with their services, if they are open or belong to the present
/// generation. If a foreign transaction used the nonce of a head, the head gets a higher nonce than the withdrawals
/// after it.
fn load_head_nonces(connection: &mut Connection) -> Result<Vec<(String, i64)>, StoreError> {
    let query = lanes::table
        .inner_join(withdrawals::table.on(lanes::batch_seq.eq(withdrawals::batch_seq.nullable())))
        .inner_join(
            account_nonces::table
                .on(account_nonces::withdrawal_seq.eq(withdrawals::seq.nullable())),
        )
        .filter(lanes::busy)
        .filter(
            account_nonces::outcome
                .is_null()
                .or(account_nonces::generation.eq(withdrawals::generation.nullable())),
        )
        .select((account_nonces::service_id, account_nonces::nonce));
    connection.load_query("nonces_of_heads", query)
}

/// The open withdrawals of a service whose transactions with this nonce or a higher one were sent, with their
/// outcomes.
fn load_from(
    connection: &mut Connection,
    service_id: &str,
    nonce: i64,
) -> Result<Vec<(i64, Option<String>)>, StoreError> {
    let of_generation = account_nonces::withdrawal_seq
        .eq(withdrawals::seq.nullable())
        .and(account_nonces::generation.eq(withdrawals::generation.nullable()));
    let sent = signed_transactions::table
        .filter(signed_transactions::service_id.eq(account_nonces::service_id))
        .filter(signed_transactions::nonce.eq(account_nonces::nonce))
        .filter(signed_transactions::sent_at.is_not_null())
        .select(signed_transactions::position);
    let query = account_nonces::table
        .inner_join(withdrawals::table.on(of_generation))
        .filter(account_nonces::service_id.eq(service_id))
        .filter(account_nonces::nonce.ge(nonce))
        .filter(account_nonces::outcome.is_null().or(account_nonces::outcome.ne("USED_ELSEWHERE")))
        .filter(withdrawals::list_state.eq("OPEN"))
        .filter(exists(sent))
        .select((withdrawals::batch_seq, account_nonces::outcome));
    connection.load_query("withdrawals_signed_ahead", query)
}

impl Store {
    /// The open withdrawals of these gas admins, and their last failures. The number of rows that are read does not
    /// depend on the number of withdrawals.
    pub fn gas_admin_queues(
        &self,
        services: &[ServiceId],
    ) -> Result<Vec<GasAdminQueue>, StoreError> {
        self.pools.read()?.snapshot(|connection| {
            let mut queues = empty_queues(services);
            count_open(connection, services, &mut queues)?;
            count_heads(connection, &mut queues)?;
            add_oldest(connection, services, &mut queues)?;
            add_last_failures(connection, services, &mut queues)?;
            Ok(queues.into_values().collect())
        })
    }
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
    let rows: Vec<(String, i64)> = connection.load_row_tuples(
        "-- open_of_gas_admins
         select v.service_id, v.added - (
             select cast(coalesce(sum(s.ended), 0) as bigint) from lanes s
             where s.service_id = v.service_id) as open
         from {x} join services v on v.service_id = x.service_id",
        service_rows(services),
    )?;
    for (service, open) in rows {
        if let Some(queue) = queues.get_mut(&service_id(&service)?) {
            queue.open = whole(open)?;
            queue.waiting = queue.open;
        }
    }
    Ok(())
}

/// Counts the withdrawals that do not only wait for earlier ones by the states that lists show.
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
    let rows: Vec<(String, i64, Option<String>)> = connection.load_row_tuples(
        "-- lanes_of_gas_admins
         select s.service_id, s.created_at, s.last_error
         from {x} join lanes s on s.service_id = x.service_id
         where s.batch_seq is not null order by s.service_id, s.created_at",
        service_rows(services),
    )?;
    for (service, created_at, last_error) in rows {
        if let Some(queue) = queues.get_mut(&service_id(&service)?)
            && queue.oldest_scheduled_at.is_none()
        {
            queue.oldest_scheduled_at = Some(Timestamp::from_micros(created_at));
            queue.last_error = last_error;
        }
    }
    Ok(())
}

fn add_last_failures(
    connection: &mut Connection,
    services: &[ServiceId],
    queues: &mut Queues,
) -> Result<(), StoreError> {
    let rows: Vec<FailureRow> = connection.load_rows(
        "-- last_failures
         select f.service_id, f.pool, f.failed_at, w.withdrawal_id, r.error_message as reason
         from {x} join last_failures f on f.service_id = x.service_id
             join withdrawals w on w.seq = f.withdrawal_seq
             left join transaction_receipts r on r.batch_seq = f.batch_seq and r.position = 0
         order by f.service_id, f.pool",
        service_rows(services),
    )?;
    for row in rows {
        if let Some(queue) = queues.get_mut(&service_id(&row.service_id)?) {
            queue.last_failures.push(row.into_failure()?);
        }
    }
    Ok(())
}

result_row! {
    struct FailureRow {
        service_id: String,
        pool: String,
        failed_at: i64,
        withdrawal_id: Vec<u8>,
        reason: Option<String>,
    }
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
