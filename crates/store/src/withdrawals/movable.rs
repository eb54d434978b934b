use std::collections::{HashMap, HashSet};

use diesel::prelude::*;
use grid_batch_core::{BatchState, Progress, ServiceId, StoredBatch, Timestamp};
use grid_batch_withdrawals::{MoveObstacle, MoveStep, OpenWithdrawal, Withdrawal};

use super::{details::WithdrawalRecord, open::open_withdrawals_of};
use crate::{
    batch::REFUSED,
    sql::{
        Connection, StoreError,
        schema::{account_nonces, database_state, waiting_holds},
    },
};

/// Where the open withdrawals of pools belong: the gas admin of each pool.
pub type GasAdminOfPool<'a> = dyn Fn(&str) -> Option<ServiceId> + 'a;

/// Open withdrawals of one gas admin, in order.
pub(super) struct Examined {
    pub(super) movable: Vec<Movable>,
    kept: Vec<(OpenWithdrawal, MoveObstacle)>,
    count: usize,
    last: Option<Timestamp>,
}

/// A withdrawal that can be moved.
pub(super) struct Movable {
    pub(super) withdrawal_seq: i64,
    /// As it is now, at its former gas admin.
    pub(super) withdrawal: Withdrawal,
    pub(super) generation: u32,
    pub(super) batch_seq: i64,
    pub(super) batch: StoredBatch,
    pub(super) waits_behind_another: bool,
    pub(super) to: ServiceId,
}

impl Examined {
    /// The step that moved them, or would.
    pub(super) fn into_step(self, count: usize) -> MoveStep {
        MoveStep {
            moved: self.movable.iter().map(Movable::open_withdrawal).collect(),
            kept: self.kept,
            next: self.last.filter(|_| self.count == count),
        }
    }
}

impl Movable {
    fn open_withdrawal(&self) -> OpenWithdrawal {
        OpenWithdrawal { id: self.withdrawal.id, batch_id: self.batch.batch_id }
    }
}

/// Reads open withdrawals and finds out which can be moved. To move them, the service must be locked.
pub(super) fn examine(
    connection: &mut Connection,
    from: &ServiceId,
    gas_admin_of: &GasAdminOfPool<'_>,
    after: Option<Timestamp>,
    count: usize,
) -> Result<Examined, StoreError> {
    let records = open_withdrawals_of(connection, from, after, count)?;
    let batch_seqs: Vec<i64> = records.iter().map(|(_, batch)| batch.seq()).collect();
    let signed = find_signed(connection, &records)?;
    let held = find_waiting_holds(connection, batch_seqs)?;
    let restored_seq = restored_seq(connection)?;
    let (mut movable, mut kept) = (Vec::new(), Vec::new());
    let (count, mut last) = (records.len(), None);
    for (withdrawal, batch) in records {
        let (batch_seq, waits_behind_another) = (batch.seq(), batch.waits_behind_another());
        let batch = batch.into_batch()?;
        last = Some(batch.created_at);
        let (withdrawal_seq, generation) = (withdrawal.withdrawal_seq, withdrawal.generation()?);
        let withdrawal = withdrawal.into_withdrawal()?;
        let Some(to) = gas_admin_of(&withdrawal.pool).filter(|to| to != from) else { continue };
        let obstacle = if signed.contains(&withdrawal_seq) {
            Some(MoveObstacle::Signed)
        } else if waits_behind_another && batch_seq <= restored_seq {
            Some(MoveObstacle::InDoubt)
        } else if held.contains(&batch_seq) {
            Some(MoveObstacle::Held)
        } else {
            obstacle(&batch)
        };
        match obstacle {
            Some(obstacle) => {
                let kept_withdrawal =
                    OpenWithdrawal { id: withdrawal.id, batch_id: batch.batch_id };
                kept.push((kept_withdrawal, obstacle));
                // Those behind it must not overtake it.
                if obstacle == MoveObstacle::Submitting {
                    return Ok(Examined { movable, kept, count, last: None });
                }
            }
            None => movable.push(Movable {
                withdrawal_seq,
                withdrawal,
                generation,
                batch_seq,
                batch,
                waits_behind_another,
                to,
            }),
        }
    }
    Ok(Examined { movable, kept, count, last })
}

/// Why the batch of a withdrawal cannot end without an attempt, if nothing was signed for it.
fn obstacle(batch: &StoredBatch) -> Option<MoveObstacle> {
    let Progress { state, earlier_may_arrive, .. } = batch.progress;
    // A hold that began because there is no key, or because the pool's node refuses it, is no decision.
    let is_held = batch.held.as_ref().is_some_and(|hold| !hold.reason.starts_with(REFUSED));
    match state {
        BatchState::Submitting => Some(MoveObstacle::Submitting),
        _ if state.awaits_poller() || earlier_may_arrive => Some(MoveObstacle::InDoubt),
        _ if is_held => Some(MoveObstacle::Held),
        _ => None,
    }
}

/// Those of these withdrawals that were or may be paid with a nonce, or whose present generation has
/// ended with one: it was closed ahead of its batch.
fn find_signed(
    connection: &mut Connection,
    records: &[WithdrawalRecord],
) -> Result<HashSet<i64>, StoreError> {
    let mut generations = HashMap::new();
    for (withdrawal, _) in records {
        generations.insert(withdrawal.withdrawal_seq, i64::from(withdrawal.generation()?));
    }
    let query = account_nonces::table
        .filter(account_nonces::withdrawal_seq.eq_any(generations.keys().copied()))
        .filter(account_nonces::outcome.is_null().or(account_nonces::outcome.ne("USED_ELSEWHERE")))
        .select((
            account_nonces::withdrawal_seq.assume_not_null(),
            account_nonces::generation,
            account_nonces::outcome,
        ));
    let nonces: Vec<(i64, Option<i32>, Option<String>)> =
        connection.load_query("nonces_of_withdrawals", query)?;
    let is_signed = |(seq, generation, outcome): &(i64, Option<i32>, Option<String>)| {
        let is_payable = outcome.as_deref().is_none_or(|outcome| outcome == "WITHDRAWN");
        is_payable || generations.get(seq).copied() == generation.map(i64::from)
    };
    Ok(nonces.iter().filter(|nonce| is_signed(nonce)).map(|(seq, _, _)| *seq).collect())
}

/// Those of these batches that an operator holds and that wait behind another one.
fn find_waiting_holds(
    connection: &mut Connection,
    batch_seqs: Vec<i64>,
) -> Result<HashSet<i64>, StoreError> {
    let query = waiting_holds::table
        .filter(waiting_holds::batch_seq.eq_any(batch_seqs))
        .select(waiting_holds::batch_seq);
    Ok(connection.load_query("waiting_holds_of", query)?.into_iter().collect())
}

/// The last batch that was stored when the database was restored; 0 if it never was.
fn restored_seq(connection: &mut Connection) -> Result<i64, StoreError> {
    let query = database_state::table.find(1).select(database_state::restored_seq);
    let rows: Vec<Option<i64>> = connection.load_query("restored_seq", query)?;
    Ok(rows.into_iter().next().flatten().unwrap_or_default())
}
