use std::collections::BTreeSet;

use diesel::prelude::*;
use grid_batch_core::batches::{AddOutcome, BatchState, NewBatch};
use grid_batch_core::operators::{ActionEffect, OperatorRequest, OperatorVerb};
use grid_batch_core::{BatchResult, ServiceId, Timestamp};
use grid_batch_withdrawals::{
    AheadCount, CancelOutcome, FailedFilter, FailedWithdrawal, PaymentBudget, PaymentLimitError,
    PaymentLimits, PoolSum, RetryOutcome, Reward, RewardConflict, RewardId, ScheduleOutcome,
    SpeedUpOutcome, UnsettledNonce, Withdrawal, WithdrawalConflict, WithdrawalDetails,
    WithdrawalFilter, WithdrawalId, WithdrawalPage, WithdrawalState, WithdrawalStore,
};

use super::{
    batch_of, find_traces,
    list::{find_seq, find_withdrawal, load_fail_reasons, load_page, withdrawal_page},
    payment_sums::{PaymentSums, sums_of_day},
    pool_lanes::fill_beside_parked,
    rows::reward_id,
    schedule::{amount_of, check_payment, limited_sums, schedule_rest},
    schema::rewards,
    target_of,
};
use crate::{
    action_log::{Logged, logged},
    batch::{Lane, lock_lanes, lock_services, write_open},
    intake::{CreatedAtAllocator, insert},
    operator::count_ahead_to_limit,
    sql::{Connection, Rows, Statement, Store, StoreError, groups::LOCK_LIMIT},
};

impl WithdrawalStore for Store {
    /// Uses one commit, unless rows of services are locked. However many requests come at once, there is at most one
    /// withdrawal with an id. If the id is derived from something that may be paid only once, no other lock is needed.
    ///
    /// ```no_run
    /// # use grid_batch_withdrawals::{ScheduleOutcome, Withdrawal, WithdrawalStore};
    /// # fn example(store: grid_batch_store::Store, withdrawal: Withdrawal) -> Result<(), Box<dyn std::error::Error>> {
    /// for outcome in store.schedule(&[withdrawal])? {
    ///     match outcome? {
    ///         ScheduleOutcome::Stored { ahead, .. } => println!("scheduled behind {ahead} others"),
    ///         ScheduleOutcome::AlreadyStored => println!("was scheduled before, and is paid once"),
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    fn schedule(
        &self,
        withdrawals: &[Withdrawal],
    ) -> BatchResult<Vec<Result<ScheduleOutcome, WithdrawalConflict>>> {
        let mut outcomes: Vec<Option<_>> = withdrawals.iter().map(|_| None).collect();
        // Requests for the same id at different services lock different rows. The database refuses the second insert,
        // and a retry finds the first withdrawal. Each retry thus finds at least one more.
        let mut retries_left = withdrawals.len();
        loop {
            match schedule_rest(self, withdrawals, &mut outcomes) {
                Some(error) if error.is_duplicate() && retries_left > 0 => retries_left -= 1,
                Some(error) if !matches!(error, StoreError::ServicesLocked { .. }) => {
                    return Err(error.into());
                }
                _ => break,
            }
        }
        let locked = |withdrawal: &Withdrawal| WithdrawalConflict::ServiceLocked {
            service_id: withdrawal.service_id.clone(),
        };
        let outcome = |(outcome, withdrawal): (Option<_>, &Withdrawal)| {
            outcome.unwrap_or_else(|| Err(locked(withdrawal)))
        };
        Ok(outcomes.into_iter().zip(withdrawals).map(outcome).collect())
    }

    fn undecided_nonces(&self) -> BatchResult<Vec<(ServiceId, UnsettledNonce)>> {
        Ok(Self::undecided_nonces(self)?)
    }

    fn withdrawal(&self, id: &WithdrawalId) -> BatchResult<Option<WithdrawalDetails>> {
        Ok(self.pools.read()?.snapshot(|connection| {
            let Some(mut details) = find_withdrawal(connection, id)? else { return Ok(None) };
            let found = count_ahead_to_limit(self, connection, &details.batch)?;
            details.ahead = Some(AheadCount::of_found(found));
            Ok(Some(details))
        })?)
    }

    /// The cost grows with the number of withdrawals of the page, and of those that do not contain the texts. If the
    /// filter names more than one of pool, service, reward and beneficiary, it also grows with the number of withdrawals
    /// that are skipped.
    fn withdrawals(
        &self,
        filter: &WithdrawalFilter,
        before: Option<&WithdrawalId>,
        limit: usize,
    ) -> BatchResult<WithdrawalPage> {
        Ok(self.pools.read()?.snapshot(|connection| {
            let before = match before {
                Some(id) => match find_seq(connection, id)? {
                    Some(seq) => Some(seq),
                    None => return Ok(WithdrawalPage::default()),
                },
                None => None,
            };
            withdrawal_page(connection, filter, before, limit)
        })?)
    }

    /// Ends a delay, and a hold that began because the ledger refused the payment, because the cancellation is a
    /// different transaction.
    fn cancel_withdrawal(
        &self,
        id: &WithdrawalId,
        request: &OperatorRequest,
    ) -> BatchResult<CancelOutcome> {
        let limit = Some(LOCK_LIMIT);
        let cancel = |connection: &mut Connection| {
            let Some(details) = lock_withdrawal(connection, id)? else {
                return Ok(Logged::unchanged(CancelOutcome::NotFound));
            };
            let (state, before) = (details.batch.progress.state, WithdrawalState::of(&details));
            if state.is_terminal() {
                return Ok(Logged::unchanged(CancelOutcome::AlreadyEnded { state: before }));
            }
            mark_cancelled(self, connection, id)?;
            if state == BatchState::Delayed {
                end_delay(connection, &details)?;
            }
            if state.awaits_poller() {
                check_now(connection, &details)?;
            }
            let before = before.as_str();
            let effect = ActionEffect::in_words(before, format!("{before}, to be cancelled"));
            let target = target_of(&details.batch.service_id, details.batch.batch_id);
            Ok(Logged::changed(CancelOutcome::Requested { state }, target, effect))
        };
        Ok(logged(self, request, OperatorVerb::CancelWithdrawal, limit, cancel)?)
    }

    /// Makes the status of the batch due, so that the adapter notices the request.
    fn speed_up_withdrawal(
        &self,
        id: &WithdrawalId,
        request: &OperatorRequest,
    ) -> BatchResult<SpeedUpOutcome> {
        let limit = Some(LOCK_LIMIT);
        let speed_up = |connection: &mut Connection| {
            let Some(details) = lock_withdrawal(connection, id)? else {
                return Ok(Logged::unchanged(SpeedUpOutcome::NotFound));
            };
            let state = WithdrawalState::of(&details);
            if !details.waits_to_be_mined() {
                return Ok(Logged::unchanged(SpeedUpOutcome::NotSent { state }));
            }
            mark_speed_up(self, connection, id)?;
            if details.batch.progress.state == BatchState::Delayed {
                end_delay(connection, &details)?;
            }
            check_now(connection, &details)?;
            let state = state.as_str();
            let effect = ActionEffect::in_words(state, format!("{state}, with higher fees"));
            let target = target_of(&details.batch.service_id, details.batch.batch_id);
            Ok(Logged::changed(SpeedUpOutcome::Requested, target, effect))
        };
        Ok(logged(self, request, OperatorVerb::SpeedUpWithdrawal, limit, speed_up)?)
    }

    fn failed_withdrawals(
        &self,
        filter: &FailedFilter,
        after: Option<&WithdrawalId>,
        limit: usize,
    ) -> BatchResult<Vec<FailedWithdrawal>> {
        Ok(self.pools.read()?.snapshot(|connection| {
            let records = load_page(connection, filter, after, limit)?;
            if records.is_empty() {
                return Ok(Vec::new());
            }
            let seqs = records.iter().map(|(_, batch_seq, _)| *batch_seq).collect();
            let mut reasons = load_fail_reasons(connection, seqs)?;
            records
                .into_iter()
                .map(|(row, batch_seq, ended_at)| {
                    Ok(FailedWithdrawal {
                        withdrawal: row.into_withdrawal()?,
                        failed_at: Timestamp::from_micros(ended_at.unwrap_or_default()),
                        fail_reason: reasons.remove(&batch_seq).unwrap_or_default(),
                    })
                })
                .collect()
        })?)
    }

    fn payment_budget(&self) -> BatchResult<PaymentBudget> {
        let limits = PaymentLimits::clone(&self.payment_limits);
        let pools: Vec<&str> = limits.day.keys().map(String::as_str).collect();
        let scheduled = sums_of_day(&mut *self.pools.read()?, &pools, self.now())?;
        Ok(PaymentBudget { limits, scheduled })
    }

    /// If there are two calls at the same time, only one of them starts the next generation. Transactions of earlier
    /// generations stay stored, and no other is signed while one of them may still be mined.
    fn retry_withdrawal(
        &self,
        id: &WithdrawalId,
        request: &OperatorRequest,
    ) -> BatchResult<RetryOutcome> {
        let limit = Some(LOCK_LIMIT);
        let retry = |connection: &mut Connection| {
            let Some(details) = lock_withdrawal(connection, id)? else {
                return Ok(Logged::unchanged(RetryOutcome::NotFound));
            };
            let state = WithdrawalState::of(&details);
            if state != WithdrawalState::Failed {
                return Ok(Logged::unchanged(RetryOutcome::NotFailed { state }));
            }
            let counted_at = match count_again(self, connection, &details.withdrawal)? {
                Ok(counted_at) => counted_at,
                Err(error) => return Ok(Logged::unchanged(RetryOutcome::PaymentLimit(error))),
            };
            let generation = details.generation + 1;
            let former = id.batch_id(details.generation);
            let of_former = [(&details.withdrawal.service_id, &former)].into_iter();
            let trace = find_traces(connection, of_former)?.remove(&former);
            let batch = NewBatch { trace, ..batch_of(&details.withdrawal, generation) };
            let now = self.now();
            let mut created_at = CreatedAtAllocator::reserve(connection, &[&batch], now)?;
            let seqs = insert(self, connection, &[&batch], &mut created_at)?;
            let no_row = || StoreError::corrupt("no row of a batch just inserted");
            let batch_seq = seqs.first().copied().ok_or_else(no_row)?;
            start_generation(connection, id, generation, batch_seq, counted_at)?;
            fill_beside_parked(connection, [&batch.service_id], now)?;
            let after = WithdrawalState::Scheduled.as_str();
            let effect = ActionEffect::in_words(state.as_str(), after);
            let target = target_of(&batch.service_id, batch.batch_id);
            Ok(Logged::changed(RetryOutcome::Scheduled { generation }, target, effect))
        };
        Ok(logged(self, request, OperatorVerb::RetryWithdrawal, limit, retry)?)
    }

    fn add_reward(&self, reward: &Reward) -> BatchResult<Result<AddOutcome, RewardConflict>> {
        self.pools.write()?.write_transaction(|connection| {
            if insert_reward(connection, reward)? {
                return Ok(Ok(AddOutcome::Stored));
            }
            let stored = find_reward(connection, &reward.id)?
                .ok_or_else(|| StoreError::corrupt("a reward that cannot be found"))?;
            if stored.has_same_terms_as(reward) {
                return Ok(Ok(AddOutcome::AlreadyStored));
            }
            Ok(Err(RewardConflict { stored }))
        })
    }

    fn reward(&self, id: &RewardId) -> BatchResult<Option<Reward>> {
        Ok(find_reward(&mut *self.pools.read()?, id)?)
    }
}

impl Store {
    /// The sum that was scheduled from each of these pools in the last 24 hours.
    pub fn pool_sums(&self, pools: &[&str]) -> Result<Vec<PoolSum>, StoreError> {
        let now = self.now();
        let mut sums = sums_of_day(&mut *self.pools.read()?, pools, now)?;
        let sum = |pool: &&str| PoolSum {
            pool: (*pool).to_owned(),
            amount: sums.remove(*pool).unwrap_or_default(),
        };
        Ok(pools.iter().map(sum).collect())
    }
}

/// The details of a withdrawal. Its service is locked until the end of the transaction, so nothing is recorded or
/// signed for the service meanwhile.
fn lock_withdrawal(
    connection: &mut Connection,
    id: &WithdrawalId,
) -> Result<Option<WithdrawalDetails>, StoreError> {
    let Some(found) = find_withdrawal(connection, id)? else { return Ok(None) };
    lock_services(connection, [&found.withdrawal.service_id])?;
    find_withdrawal(connection, id)
}

fn end_delay(connection: &mut Connection, details: &WithdrawalDetails) -> Result<(), StoreError> {
    let batch = (details.batch.service_id.clone(), details.batch.batch_id);
    let mut lanes = lock_lanes(connection, &BTreeSet::from([batch]))?;
    lanes.retain(|_, lane| lane.end_delay());
    write_open(connection, &lanes.values().collect::<Vec<&Lane>>())
}

/// Makes the status of the batch due, because the transaction that used its nonce may be the cancellation.
fn check_now(connection: &mut Connection, details: &WithdrawalDetails) -> Result<(), StoreError> {
    let statement = Statement::new(
        "-- check_cancelled
         update lanes set checked_at = null where service_id = ? and batch_id = ?",
    )
    .text(details.batch.service_id.as_str())
    .bytes(details.batch.batch_id.as_bytes());
    connection.execute(&statement).map(drop)
}

fn mark_cancelled(
    store: &Store,
    connection: &mut Connection,
    id: &WithdrawalId,
) -> Result<(), StoreError> {
    let statement = Statement::new(
        "-- cancel_withdrawal
         update withdrawals set cancelled_at = ?
         where withdrawal_id = ? and cancelled_at is null",
    )
    .long(store.now().as_micros())
    .bytes(id.as_bytes());
    connection.execute(&statement).map(drop)
}

fn mark_speed_up(
    store: &Store,
    connection: &mut Connection,
    id: &WithdrawalId,
) -> Result<(), StoreError> {
    let statement = Statement::new(
        "-- speed_up_withdrawal
         update withdrawals set speed_up_at = ? where withdrawal_id = ?",
    )
    .long(store.now().as_micros())
    .bytes(id.as_bytes());
    connection.execute(&statement).map(drop)
}

/// Counts a withdrawal that is retried towards its sums again. Returns the step in which it counts, if it does.
fn count_again(
    store: &Store,
    connection: &mut Connection,
    withdrawal: &Withdrawal,
) -> Result<Result<Option<i64>, PaymentLimitError>, StoreError> {
    let sums = limited_sums(store, withdrawal)?;
    if sums.is_empty() {
        return Ok(Ok(None));
    }
    let mut stored = PaymentSums::lock(connection, &sums, store.now())?;
    let amount = amount_of(withdrawal)?;
    let limits = &store.payment_limits;
    if let Err(error) = check_payment(limits, &stored, withdrawal, &sums, &amount) {
        return Ok(Err(error));
    }
    stored.add(&sums, &amount);
    stored.write(connection)?;
    Ok(Ok(Some(stored.step())))
}

fn start_generation(
    connection: &mut Connection,
    id: &WithdrawalId,
    generation: u32,
    batch_seq: i64,
    counted_at: Option<i64>,
) -> Result<(), StoreError> {
    connection.execute_rows(
        "-- start_generation
         update withdrawals as w
         set generation = x.generation, batch_seq = x.batch_seq, cancelled_at = null,
             speed_up_at = null,
             list_state = 'OPEN', counted_at = x.counted_at
         from {x} where w.withdrawal_id = x.withdrawal_id",
        Rows::default()
            .bytes("withdrawal_id", [&id.as_bytes()[..]])
            .long("generation", [i64::from(generation)])
            .long("batch_seq", [batch_seq])
            .optional_long("counted_at", [counted_at]),
    )
}

/// Returns whether the reward is new.
fn insert_reward(connection: &mut Connection, reward: &Reward) -> Result<bool, StoreError> {
    let rows = Rows::default()
        .bytes("reward_id", [&reward.id.as_bytes()[..]])
        .text("pool", [reward.pool.as_str()])
        .text("amount", [reward.amount.as_str()])
        .bool("once_per_member", [reward.once_per_member])
        .long("created_at", [reward.created_at.as_micros()]);
    let statement = Statement::new(
            "-- insert_reward
             insert into rewards (reward_id, pool, amount, once_per_member, created_at)
             select x.reward_id, x.pool, x.amount, x.once_per_member, x.created_at from {x} where true
             on conflict do nothing",
        )
        .rows(rows);
    Ok(connection.execute(&statement)? > 0)
}

fn find_reward(connection: &mut Connection, id: &RewardId) -> Result<Option<Reward>, StoreError> {
    let query = rewards::table.find(&id.as_bytes()[..]).select(RewardRecord::as_select());
    let records = connection.load_query("reward", query)?;
    records.into_iter().next().map(RewardRecord::into_reward).transpose()
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = rewards)]
struct RewardRecord {
    reward_id: Vec<u8>,
    pool: String,
    amount: String,
    once_per_member: bool,
    created_at: i64,
}

impl RewardRecord {
    fn into_reward(self) -> Result<Reward, StoreError> {
        Ok(Reward {
            id: reward_id(&self.reward_id)?,
            pool: self.pool,
            amount: self.amount,
            once_per_member: self.once_per_member,
            created_at: Timestamp::from_micros(self.created_at),
        })
    }
}
