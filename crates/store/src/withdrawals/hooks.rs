//! Updates withdrawals when something happens to their batches.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use diesel::prelude::*;
use grid_batch_core::batches::BatchState;
use grid_batch_core::events::EventWithdrawal;
use grid_batch_core::operators::{ActionOutcome, OperatorAction};
use grid_batch_core::queue::Ahead;
use grid_batch_core::{Hex, ItemId, ServiceId, Timestamp};
use grid_batch_withdrawals::{Amount, Call, WithdrawalId};

use super::{
    following::load_paid_behind, nonce_actions, payment_sums::subtract, pool_lanes,
    rows::read_json, schema::withdrawals,
};
use crate::sql::{
    Connection, Rows, Store, StoreError,
    hooks::{BatchHooks, EndedBatch},
    result_row,
};

/// The hooks of withdrawals.
#[derive(Debug)]
pub(crate) struct WithdrawalHooks;

impl BatchHooks for WithdrawalHooks {
    /// Runs no statement if no batch has the id of a withdrawal's batch.
    fn ended(
        &self,
        connection: &mut Connection,
        ended: &[EndedBatch],
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let tries_withdrawal = |batch: &&EndedBatch| WithdrawalId::of_batch(&batch.id).is_some();
        let ended: Vec<&EndedBatch> = ended.iter().filter(tries_withdrawal).collect();
        end_withdrawals(connection, &ended)?;
        record_failures(connection, &ended, now)
    }

    /// Runs no statement if the batch has not the id of a withdrawal's batch.
    fn committed_ahead(
        &self,
        connection: &mut Connection,
        service_id: &ServiceId,
        ended: &ItemId,
        ended_seq: i64,
    ) -> Result<Vec<(i64, ItemId)>, StoreError> {
        match WithdrawalId::of_batch(ended) {
            Some(_) => load_paid_behind(connection, service_id, ended_seq),
            None => Ok(Vec::new()),
        }
    }

    fn fill_by_pool(
        &self,
        connection: &mut Connection,
        services: &BTreeSet<ServiceId>,
        now: Timestamp,
    ) -> Result<BTreeSet<(ServiceId, ItemId)>, StoreError> {
        let installed = pool_lanes::fill_by_pool(connection, services, now)?;
        installed.iter().filter(|row| row.restored).map(|row| row.key()).collect()
    }

    /// A ledger applies nonces in order, so a withdrawal with a nonce is not overtaken.
    fn not_overtaken(
        &self,
        connection: &mut Connection,
        batch_seqs: &[i64],
    ) -> Result<BTreeSet<i64>, StoreError> {
        pool_lanes::with_open_nonce(connection, batch_seqs)
    }

    fn ahead(
        &self,
        connection: &mut Connection,
        service_id: &ServiceId,
        created_at: &[Timestamp],
    ) -> Result<Option<Vec<Option<Ahead>>>, StoreError> {
        pool_lanes::ahead(connection, service_id, created_at)
    }

    fn is_of_withdrawal(
        &self,
        connection: &mut Connection,
        batch_seq: i64,
    ) -> Result<bool, StoreError> {
        let query = withdrawals::table
            .filter(withdrawals::batch_seq.eq(batch_seq))
            .select(withdrawals::batch_seq);
        let found: Vec<i64> = connection.load_query("is_of_withdrawal", query)?;
        Ok(!found.is_empty())
    }

    fn act_on_nonces(
        &self,
        store: &Store,
        connection: &mut Connection,
        action: &OperatorAction,
    ) -> Result<ActionOutcome, StoreError> {
        nonce_actions::act_on_nonces(store, connection, action)
    }

    fn event_details(
        &self,
        connection: &mut Connection,
        batch_ids: &[&[u8]],
    ) -> Result<HashMap<Vec<u8>, EventWithdrawal>, StoreError> {
        withdrawals_of_events(connection, batch_ids)
    }

    /// The latest batch of a withdrawal is not removed.
    fn is_removable(&self) -> Option<&'static str> {
        Some("(select count(*) from withdrawals w where w.batch_seq = b.seq) = 0")
    }

    /// A payment without the event of its pool counts as held although its batch has ended.
    fn held_services(&self) -> Option<&'static str> {
        Some(
            "select n.service_id from account_nonces n
             where n.service_id > '' and n.pool_withdrawal_id = ''
                 and (select w.list_state from withdrawals w
                      where w.seq = n.withdrawal_seq and (
                          select b.dlt_status from batches b where b.seq = w.batch_seq) is not null) = 'OPEN'",
        )
    }
}

/// Stores how withdrawals ended, so that lists by state can use an index. They end like their batches, unless the chain
/// has shown that they were made. Withdrawals whose pool did not emit its event are left to an operator.
fn end_withdrawals(connection: &mut Connection, ended: &[&EndedBatch]) -> Result<(), StoreError> {
    let status = |batch: &&EndedBatch| Some((batch.seq, batch.state.dlt_status()?.as_str()));
    let ended: Vec<(i64, &str)> = ended.iter().filter_map(status).collect();
    if ended.is_empty() {
        return Ok(());
    }
    connection.execute_rows(
        "-- end_withdrawals
         update withdrawals as w
         set list_state = coalesce(
             (select case n.pool_withdrawal_id when '' then 'OPEN' else 'COMMITTED' end
              from account_nonces n where n.withdrawal_seq = w.seq and n.outcome = 'WITHDRAWN'),
             x.dlt_status)
         from {x} where w.batch_seq = x.batch_seq",
        Rows::default()
            .long("batch_seq", ended.iter().map(|(seq, _)| *seq))
            .text("dlt_status", ended.iter().map(|(_, status)| *status)),
    )
}

/// Records the failures among withdrawals whose batches have just ended. Their amounts are subtracted from the sums that
/// they were added to, and those from pools become the last failures of these.
fn record_failures(
    connection: &mut Connection,
    ended: &[&EndedBatch],
    now: Timestamp,
) -> Result<(), StoreError> {
    let invalid = ended.iter().filter(|batch| batch.state == BatchState::Invalid);
    let batches: Vec<i64> = invalid.map(|batch| batch.seq).collect();
    if batches.is_empty() {
        return Ok(());
    }
    let failed = failed_withdrawals(connection, &batches)?;
    if failed.is_empty() {
        return Ok(());
    }
    let mut counted = Vec::new();
    for row in &failed {
        if let Some(step) = row.counted_at {
            let amount = row.amount()?;
            counted.extend(row.payers()?.into_iter().map(|key| ((key, step), amount.clone())));
        }
    }
    let subtracted: Vec<_> =
        counted.iter().map(|((key, step), sum)| ((key.as_str(), *step), sum.clone())).collect();
    subtract(connection, &subtracted)?;
    mark_not_counted(connection, &failed)?;
    write_last_failures(connection, &failed, now)
}

fn failed_withdrawals(
    connection: &mut Connection,
    batches: &[i64],
) -> Result<Vec<FailedWithdrawalRow>, StoreError> {
    connection.load_rows(
        "-- failed_withdrawals
         select w.seq as withdrawal_seq, w.batch_seq, w.service_id, w.pool, w.amount, w.counted_at,
             w.call
         from {x} join withdrawals w on w.batch_seq = x.batch_seq
         where w.call is null or w.counted_at is not null",
        Rows::default().long("batch_seq", batches.iter().copied()),
    )
}

fn mark_not_counted(
    connection: &mut Connection,
    failed: &[FailedWithdrawalRow],
) -> Result<(), StoreError> {
    connection.execute_rows(
        "-- mark_not_counted
         update withdrawals as w set counted_at = null
         from {x} where w.seq = x.withdrawal_seq",
        Rows::default().long("withdrawal_seq", failed.iter().map(|row| row.withdrawal_seq)),
    )
}

fn write_last_failures(
    connection: &mut Connection,
    failed: &[FailedWithdrawalRow],
    now: Timestamp,
) -> Result<(), StoreError> {
    let from_pools = failed.iter().filter(|row| row.call.is_none());
    // There is one row per pool, because a statement may change a row only once.
    let last: BTreeMap<(&str, &str), &FailedWithdrawalRow> =
        from_pools.map(|row| ((row.service_id.as_str(), row.pool.as_str()), row)).collect();
    if last.is_empty() {
        return Ok(());
    }
    connection.execute_rows(
        "-- write_last_failures
         insert into last_failures (service_id, pool, withdrawal_seq, batch_seq, failed_at)
         select service_id, pool, withdrawal_seq, batch_seq, failed_at
         from {x} where true order by service_id, pool
         on conflict (service_id, pool) do update
         set withdrawal_seq = excluded.withdrawal_seq, batch_seq = excluded.batch_seq,
             failed_at = excluded.failed_at",
        Rows::default()
            .text("service_id", last.keys().map(|(service_id, _)| *service_id))
            .text("pool", last.keys().map(|(_, pool)| *pool))
            .long("withdrawal_seq", last.values().map(|row| row.withdrawal_seq))
            .long("batch_seq", last.values().map(|row| row.batch_seq))
            .long("failed_at", last.values().map(|_| now.as_micros())),
    )
}

result_row! {
    struct FailedWithdrawalRow {
        withdrawal_seq: i64,
        batch_seq: i64,
        service_id: String,
        pool: String,
        amount: String,
        counted_at: Option<i64>,
        call: Option<String>,
    }
}

impl FailedWithdrawalRow {
    /// The keys of what its amount was counted for.
    fn payers(&self) -> Result<Vec<String>, StoreError> {
        let Some(call) = &self.call else { return Ok(vec![self.pool.clone()]) };
        let call: Call = read_json(call)?;
        Ok(call.day_limits.iter().map(|limit| limit.payer.key().into_owned()).collect())
    }

    fn amount(&self) -> Result<Amount, StoreError> {
        self.amount.parse().map_err(StoreError::corrupt)
    }
}

/// The withdrawals to which these batches belong, by the ids of the batches. Runs no statement if no batch has the id
/// of a withdrawal's batch.
fn withdrawals_of_events(
    connection: &mut Connection,
    batch_ids: &[&[u8]],
) -> Result<HashMap<Vec<u8>, EventWithdrawal>, StoreError> {
    let named = batch_ids.iter().copied().filter_map(read_id);
    let mut named: Vec<(&[u8], WithdrawalId, u32)> = named.collect();
    if named.is_empty() {
        return Ok(HashMap::new());
    }
    named.sort_unstable();
    named.dedup();
    let rows: Vec<WithdrawalEventRow> = connection.load_rows(
        "-- withdrawals_of_events
         select x.batch_id, w.withdrawal_id, w.call is not null as is_call, w.amount,
             case when w.call is null then w.pool else w.beneficiary end as pool, (
             select (
                 select k.hash from signed_transactions k
                 where k.service_id = n.service_id and k.nonce = n.nonce and not k.is_filler
                 order by k.max_fee desc, k.position desc limit 1)
             from account_nonces n
             where n.withdrawal_seq = w.seq and coalesce(n.outcome, '') <> 'USED_ELSEWHERE'
                 and (n.generation = x.generation
                     or (n.generation < x.generation and n.outcome is null))
             order by n.nonce desc limit 1) as hash
         from {x} join withdrawals w on w.withdrawal_id = x.withdrawal_id",
        Rows::default()
            .bytes("batch_id", named.iter().map(|(batch_id, ..)| *batch_id))
            .bytes("withdrawal_id", named.iter().map(|(_, id, _)| &id.as_bytes()[..]))
            .long("generation", named.iter().map(|(.., generation)| i64::from(*generation)))
            .in_chunks(),
    )?;
    rows.into_iter().map(WithdrawalEventRow::read).collect()
}

fn read_id(batch_id: &[u8]) -> Option<(&[u8], WithdrawalId, u32)> {
    let bytes = batch_id.try_into().ok()?;
    let (id, generation) = WithdrawalId::of_batch(&ItemId::from_bytes(bytes))?;
    Some((batch_id, id, generation))
}

result_row! {
    struct WithdrawalEventRow {
        batch_id: Vec<u8>,
        withdrawal_id: Vec<u8>,
        is_call: bool,
        pool: String,
        amount: String,
        hash: Option<Vec<u8>>,
    }
}

impl WithdrawalEventRow {
    fn read(self) -> Result<(Vec<u8>, EventWithdrawal), StoreError> {
        let Self { batch_id, withdrawal_id, is_call, pool, amount, hash } = self;
        let id = WithdrawalId::try_from(&withdrawal_id[..]).map_err(StoreError::corrupt)?;
        let transaction_hash = hash.map(|hash| format!("0x{}", Hex(&hash)));
        let id = id.to_string();
        let withdrawal = EventWithdrawal { id, is_call, pool, amount, transaction_hash };
        Ok((batch_id, withdrawal))
    }
}
