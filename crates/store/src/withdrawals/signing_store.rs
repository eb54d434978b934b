use std::{collections::HashMap, slice};

use diesel::prelude::*;
use grid_batch_core::batches::DltStatus;
use grid_batch_core::{BatchResult, Hex, ItemId, ServiceId, Timestamp};
use grid_batch_withdrawals::{
    BatchAttempt, ClosedNonce, FollowingPayment, FollowingPayments, NewSignedTransaction,
    NonceOutcome, NonceUse, Payment, SignFn, SignedTransaction, SigningStore, Terms,
    UnpaidWithdrawal, UnsettledNonces, WithdrawalId,
};

use super::{
    close::{check_outcome, correct_ends, lock_nonces, write_closed},
    following::{
        Behind, FOLLOWING_COLUMNS, StoredFollowing, find_head, is_for_first_unsigned,
        load_following, load_rows, lock_head, next_position, nonces_with_owners,
    },
    nonces::{
        find_payment, has_undecided_nonce, highest_nonce, insert_nonce, insert_nonces,
        lock_payment, may_pay, pools_of, stored_nonces,
    },
    rows::{
        IS_RESTORED, NONCE_COLUMNS, SIGNED_COLUMNS, SignedRow, WITHDRAWAL_COLUMNS, load_number,
        may_be_paid, to_stored, whole,
    },
    schema::withdrawals,
    settle::{
        SettledNonce, StoredNonceRow, adopt, find_nonce, insert_settled, payable_owner,
        update_settled, withdrawal_of,
    },
    transactions::{
        MAY_PAY, WITH_CURRENT_BATCH, insert_all_stored, insert_transaction, remove_transactions,
        signed_transactions,
    },
};
use crate::{
    batch::lock_services,
    restored::CountedSend,
    sql::{
        Rows, Statement, Store, StoreError,
        error::SigningError,
        groups::LOCK_LIMIT,
        result_row,
        rows::{storable, time},
    },
};

impl SigningStore for Store {
    fn payment(&self, service_id: &ServiceId, batch_id: &ItemId) -> BatchResult<Option<Payment>> {
        Ok(self.pools.read()?.snapshot(|connection| {
            let found = find_payment(connection, service_id, batch_id)?;
            Ok(found.map(|stored| stored.payment))
        })?)
    }

    fn assign_nonce(
        &self,
        attempt: &BatchAttempt,
        at_least: u64,
        sign: &mut SignFn<'_>,
    ) -> BatchResult<Option<SignedTransaction>> {
        let service_id = &attempt.service_id;
        let now = self.now();
        self.pools.write()?.transaction_with_lock_limit(LOCK_LIMIT, |connection| {
            let Some(stored) = lock_payment(connection, attempt)? else { return Ok(None) };
            let payment = &stored.payment;
            if payment.cancel_requested || payment.nonce.as_ref().is_some_and(may_be_paid) {
                return Ok(None);
            }
            if has_undecided_nonce(connection, service_id)? {
                return Ok(None);
            }
            let next = highest_nonce(connection, service_id)?.map(|highest| highest + 1);
            let nonce = next.map_or(at_least, |next| next.max(at_least));
            let signed = sign_with(nonce, sign)?;
            insert_nonce(connection, service_id, nonce, Some(&stored), now)?;
            Ok(Some(insert_transaction(connection, service_id, signed, 0, now)?))
        })
    }

    fn replace_transaction(
        &self,
        attempt: &BatchAttempt,
        signed: NewSignedTransaction,
    ) -> BatchResult<Option<SignedTransaction>> {
        let now = self.now();
        self.pools.write()?.transaction_with_lock_limit(LOCK_LIMIT, |connection| {
            let Some(stored) = lock_payment(connection, attempt)? else { return Ok(None) };
            let Some(open) = stored.payment.nonce else { return Ok(None) };
            if open.nonce != signed.nonce || open.outcome.is_some() {
                return Ok(None);
            }
            let position = open.transactions.len();
            if let Some(same) = open.transactions.into_iter().find(|stored| stored.signed == signed)
            {
                return Ok(Some(same));
            }
            Ok(Some(insert_transaction(connection, &attempt.service_id, signed, position, now)?))
        })
    }

    fn fill_nonce(
        &self,
        attempt: &BatchAttempt,
        nonce: u64,
        sign: &mut SignFn<'_>,
    ) -> BatchResult<Option<SignedTransaction>> {
        let service_id = &attempt.service_id;
        let number = to_stored("nonce", nonce)?;
        let now = self.now();
        self.pools.write()?.transaction_with_lock_limit(LOCK_LIMIT, |connection| {
            let Some(stored) = lock_payment(connection, attempt)? else { return Ok(None) };
            if stored.payment.nonce.is_none_or(|open| open.nonce <= nonce) {
                return Ok(None);
            }
            match may_pay(connection, service_id, number)? {
                Some(true) => return Ok(None),
                Some(false) => {}
                None => insert_nonce(connection, service_id, nonce, None, now)?,
            }
            let key = (service_id.as_str().to_owned(), number);
            let mut transactions = signed_transactions(connection, slice::from_ref(&key))?;
            let transactions = transactions.remove(&key).unwrap_or_default();
            let position = transactions.len();
            let filler = sign_with(nonce, sign)?;
            if !filler.is_filler {
                return Err(StoreError::from(SigningError::NotAFiller { nonce }).into());
            }
            if let Some(same) = transactions.into_iter().find(|stored| stored.signed == filler) {
                return Ok(Some(same));
            }
            Ok(Some(insert_transaction(connection, service_id, filler, position, now)?))
        })
    }

    fn following_payments(
        &self,
        service_id: &ServiceId,
        batch_id: &ItemId,
        count: usize,
    ) -> BatchResult<Option<FollowingPayments>> {
        Ok(self.pools.read()?.snapshot(|connection| {
            let Some(head) = find_head(connection, service_id, batch_id, "")? else {
                return Ok(None);
            };
            let Behind { payments, due_pools } =
                load_following(connection, service_id, &head, count, self.now())?;
            Ok(Some(FollowingPayments {
                head: BatchAttempt {
                    service_id: service_id.clone(),
                    batch_id: *batch_id,
                    attempt_id: head.attempt_id()?,
                },
                is_under_way: head.is_under_way,
                next_nonce: highest_nonce(connection, service_id)?.map_or(0, |highest| highest + 1),
                has_unsettled: !stored_nonces(connection, service_id)?.is_empty(),
                payments: payments.into_iter().map(|stored| stored.split().1).collect(),
                due_pools,
            }))
        })?)
    }

    /// The withdrawals are read again under the lock of the service, so that the order of nonces is that of the queue
    /// and no withdrawal gets a second nonce.
    fn sign_following(
        &self,
        following: &FollowingPayments,
        signed: Vec<NewSignedTransaction>,
    ) -> BatchResult<bool> {
        let service_id = &following.head.service_id;
        let now = self.now();
        let mut counted = None;
        let is_stored =
            self.pools.write()?.transaction_with_lock_limit(LOCK_LIMIT, |connection| {
                lock_services(connection, [service_id])?;
                let Some(head) = lock_head(connection, &following.head)? else { return Ok(false) };
                let next = highest_nonce(connection, service_id)?.map_or(0, |highest| highest + 1);
                if next != following.next_nonce || has_undecided_nonce(connection, service_id)? {
                    return Ok(false);
                }
                let count = following.payments.len();
                let present = load_following(connection, service_id, &head, count, now)?;
                let (seqs, payments): (Vec<i64>, Vec<_>) =
                    present.payments.into_iter().map(StoredFollowing::split).unzip();
                let present = FollowingPayments { payments, ..following.clone() };
                if !is_for_first_unsigned(following, &present, &signed) {
                    return Ok(false);
                }
                let nonces = nonces_with_owners(&present, &seqs, &signed);
                insert_nonces(connection, service_id, &nonces, now)?;
                let signed: Vec<(SignedTransaction, usize)> = signed
                    .into_iter()
                    .map(|signed| (SignedTransaction::new(signed, now), 0))
                    .collect();
                insert_all_stored(connection, service_id, &signed)?;
                counted = CountedSend::count(self, connection)?;
                Ok::<_, StoreError>(true)
            })?;
        CountedSend::committed(counted, self);
        Ok(is_stored)
    }

    fn replace_following(
        &self,
        following: &FollowingPayments,
        signed: Vec<NewSignedTransaction>,
    ) -> BatchResult<bool> {
        let service_id = &following.head.service_id;
        let now = self.now();
        self.pools.write()?.transaction_with_lock_limit(LOCK_LIMIT, |connection| {
            lock_services(connection, [service_id])?;
            let Some(lane) = lock_head(connection, &following.head)? else { return Ok(false) };
            let head = find_payment(connection, service_id, &following.head.batch_id)?;
            let count = following.payments.len();
            let behind = load_following(connection, service_id, &lane, count, now)?;
            let behind = behind.payments.into_iter().map(|stored| StoredFollowing::split(stored).1);
            let behind = behind.filter(|it| !it.is_held).map(|it| it.payment);
            let payments = head.map(|head| head.payment).into_iter().chain(behind);
            let positions: HashMap<u64, usize> = payments.filter_map(next_position).collect();
            let placed: Option<Vec<(SignedTransaction, usize)>> = signed
                .into_iter()
                .map(|signed| {
                    let position = *positions.get(&signed.nonce)?;
                    Some((SignedTransaction::new(signed, now), position))
                })
                .collect();
            let Some(placed) = placed else { return Ok(false) };
            insert_all_stored(connection, service_id, &placed)?;
            Ok(true)
        })
    }

    fn next_nonce(&self, service_id: &ServiceId) -> BatchResult<Option<u64>> {
        let highest = highest_nonce(&mut *self.pools.read()?, service_id)?;
        Ok(highest.map(|highest| highest + 1))
    }

    /// If a nonce has several transactions, returns a filler if there is one, otherwise the payment with the highest
    /// fee. Failed payments are left out: if the chain has forgotten that a payment failed, it could be made, possibly
    /// in addition to another one.
    fn transactions_from(
        &self,
        service_id: &ServiceId,
        nonce: u64,
    ) -> BatchResult<Vec<NewSignedTransaction>> {
        let statement = Statement::new(format!(
            "-- transactions_from
             select {SIGNED_COLUMNS}
             from account_nonces n
             join signed_transactions k on k.service_id = n.service_id and k.nonce = n.nonce
             {WITH_CURRENT_BATCH}
             where n.service_id = ? and n.nonce >= ?
                 and k.position = (
                     select o.position from signed_transactions o
                     where o.service_id = n.service_id and o.nonce = n.nonce
                     order by o.is_filler desc, o.max_fee desc, o.position desc limit 1)
                 and (k.is_filler or {MAY_PAY})
             order by n.service_id, n.nonce"
        ))
        .text(service_id.as_str())
        .long(to_stored("nonce", nonce)?);
        let rows: Vec<SignedRow> = self.pools.read()?.load(&statement)?;
        rows.into_iter().map(|row| Ok(row.into_transaction()?.signed)).collect()
    }

    fn open_payments_from(
        &self,
        service_id: &ServiceId,
        nonce: u64,
    ) -> BatchResult<Vec<FollowingPayment>> {
        let statement = Statement::new(format!(
                "-- open_payments_from
                 select {FOLLOWING_COLUMNS}, {WITHDRAWAL_COLUMNS}, {NONCE_COLUMNS}, {IS_RESTORED}
                 from account_nonces n
                 join withdrawals w on w.seq = n.withdrawal_seq
                 join batches b on b.seq = w.batch_seq
                 where n.service_id = ? and n.nonce >= ? and n.outcome is null and b.ended_at is null
                 order by n.service_id, n.nonce"
            ))
            .text(service_id.as_str())
            .long(to_stored("nonce", nonce)?);
        let payments =
            self.pools.read()?.snapshot(|connection| load_rows(connection, &statement))?;
        Ok(payments.into_iter().map(|stored| stored.split().1).collect())
    }

    fn mark_sent(&self, hash: &[u8; 32], error: Option<&str>) -> BatchResult<()> {
        self.mark_all_sent(&[(*hash, error.map(str::to_owned))])
    }

    fn mark_all_sent(&self, sent: &[([u8; 32], Option<String>)]) -> BatchResult<()> {
        let errors: Vec<_> = sent.iter().map(|(_, error)| error.as_deref().map(storable)).collect();
        let now = self.now().as_micros();
        let statement = Statement::new(
            "-- mark_sent
             update signed_transactions as k
             set sent_at = x.sent_at, last_error = x.last_error
             from {x} where k.hash = x.hash",
        )
        .rows(
            Rows::default()
                .bytes("hash", sent.iter().map(|(hash, _)| &hash[..]))
                .long("sent_at", sent.iter().map(|_| now))
                .optional_text("last_error", errors.iter().map(Option::as_deref)),
        );
        let marked = self.pools.write()?.execute(&statement)?;
        match sent {
            [(hash, _)] if marked == 0 => {
                let hash = Hex(hash).to_string();
                Err(StoreError::from(SigningError::UnknownTransaction { hash }).into())
            }
            _ => Ok(()),
        }
    }

    /// A note that is already stored is not written again.
    fn note(&self, service_id: &ServiceId, nonce: u64, note: Option<&str>) -> BatchResult<()> {
        let note = note.map(storable);
        let rows = Rows::default()
            .text("service_id", [service_id.as_str()])
            .long("nonce", [to_stored("nonce", nonce)?])
            .optional_text("note", [note.as_deref()]);
        Ok(self.pools.write()?.execute_rows(
            "-- note
             update account_nonces as n set note = x.note from {x}
             where n.service_id = x.service_id and n.nonce = x.nonce
                 and n.outcome is null and n.note is distinct from x.note",
            rows,
        )?)
    }

    fn record_foreign_use(
        &self,
        service_id: &ServiceId,
        nonce: u64,
        hash: &[u8; 32],
    ) -> BatchResult<()> {
        let rows = Rows::default()
            .text("service_id", [service_id.as_str()])
            .long("nonce", [to_stored("nonce", nonce)?])
            .bytes("foreign_hash", [&hash[..]]);
        Ok(self.pools.write()?.execute_rows(
            "-- record_foreign_use
             update account_nonces as n set foreign_hash = x.foreign_hash from {x}
             where n.service_id = x.service_id and n.nonce = x.nonce
                 and n.outcome is null and n.foreign_hash is distinct from x.foreign_hash",
            rows,
        )?)
    }

    /// It is stored with the ledger, so it is reset when the database is bound to another ledger.
    fn highest_block(&self) -> BatchResult<Option<u64>> {
        let statement = Statement::new(
            "-- highest_block\n select l.highest_block as number from ledger l where l.id = ?",
        )
        .long(1);
        let highest = load_number(&mut *self.pools.read()?, &statement)?;
        Ok(highest.map(whole).transpose()?)
    }

    /// Does nothing if the database is not bound to a ledger.
    fn record_highest_block(&self, number: u64) -> BatchResult<()> {
        let number = i64::try_from(number).unwrap_or(i64::MAX);
        let statement = Statement::new(
            "-- record_highest_block
             update ledger set highest_block = ?
             where id = 1 and coalesce(highest_block, -1) < ?",
        )
        .long(number)
        .long(number);
        self.pools.write()?.execute(&statement)?;
        Ok(())
    }

    fn unsettled_nonces(&self, service_id: &ServiceId) -> BatchResult<UnsettledNonces> {
        Ok(self.pools.read()?.snapshot(|connection| {
            let next = highest_nonce(connection, service_id)?.map(|highest| highest + 1);
            Ok(UnsettledNonces { next, stored: stored_nonces(connection, service_id)? })
        })?)
    }

    fn unsettled_since(&self, service_id: &ServiceId) -> BatchResult<Option<Timestamp>> {
        let statement = Statement::new(
            "-- unsettled_since
             select coalesce(
                 (select n.assigned_at from account_nonces n where n.service_id = ?
                  order by n.nonce desc limit 1),
                 (select w.created_at from withdrawals w where w.service_id = ?
                  order by w.seq limit 1)) as number",
        )
        .text(service_id.as_str())
        .text(service_id.as_str());
        Ok(time(load_number(&mut *self.pools.read()?, &statement)?))
    }

    fn first_open(&self, service_id: &ServiceId) -> BatchResult<Option<Timestamp>> {
        let statement = Statement::new(
            "-- first_open_withdrawal
             select w.created_at as number
             from batches b join withdrawals w on w.batch_seq = b.seq
             where b.service_id = ? and b.ended_at is null
             order by b.service_id, b.created_at limit 1",
        )
        .text(service_id.as_str());
        Ok(time(load_number(&mut *self.pools.read()?, &statement)?))
    }

    fn pools(&self, service_id: &ServiceId) -> BatchResult<Vec<String>> {
        Ok(pools_of(&mut *self.pools.read()?, service_id)?)
    }

    fn has_paid(&self, pool: &str) -> BatchResult<bool> {
        let paid = withdrawals::table
            .filter(withdrawals::pool.eq(pool))
            .filter(withdrawals::list_state.eq(DltStatus::Committed.as_str()))
            .select(withdrawals::seq)
            .limit(1);
        let rows: Vec<i64> = self.pools.read()?.load_query("has_paid", paid)?;
        Ok(!rows.is_empty())
    }

    fn unpaid_withdrawals(
        &self,
        service_id: &ServiceId,
        terms: &Terms,
    ) -> BatchResult<Vec<UnpaidWithdrawal>> {
        // The column of calls is JSON, in which a text in another field has escaped quotes.
        let stored_data = match terms {
            Terms::Withdrawal { .. } => String::new(),
            Terms::Call { data, .. } => format!("\"data\":\"{data}\""),
        };
        let statement = match terms {
            Terms::Withdrawal { pool, beneficiary, amount } => {
                Statement::new(unpaid("-- unpaid_withdrawals", "w.call is null and w.pool = ?"))
                    .text(beneficiary)
                    .text(service_id.as_str())
                    .text(amount)
                    .text(pool)
            }
            Terms::Call { to, value, .. } => Statement::new(unpaid(
                "-- unpaid_calls",
                "w.call is not null and replace(w.call, ?, '') <> w.call",
            ))
            .text(to.as_deref().unwrap_or_default())
            .text(service_id.as_str())
            .text(value)
            .text(&stored_data),
        };
        let rows: Vec<UnpaidRow> = self.pools.read()?.load(&statement)?;
        Ok(rows.into_iter().map(UnpaidRow::read).collect::<Result<_, _>>()?)
    }

    fn settle_nonce(
        &self,
        service_id: &ServiceId,
        nonce: u64,
        used_at: Timestamp,
        nonce_use: &NonceUse,
    ) -> BatchResult<bool> {
        let number = to_stored("nonce", nonce)?;
        let now = self.now();
        self.pools.write()?.transaction_with_lock_limit(LOCK_LIMIT, |connection| {
            lock_services(connection, [service_id])?;
            let stored = find_nonce(connection, service_id, number)?;
            if stored.as_ref().is_some_and(|stored| stored.outcome.is_some()) {
                return Ok(false);
            }
            // The nonce was assigned after its use was searched, so its use is found out together with the withdrawal.
            let is_assigned = stored.as_ref().is_some_and(|it| it.is_of_open && !it.undecided);
            if is_assigned && !matches!(nonce_use, NonceUse::Withdrawal { .. }) {
                return Ok(false);
            }
            let former = stored.as_ref().and_then(StoredNonceRow::owner);
            let owner = match nonce_use {
                NonceUse::Withdrawal { id, .. } => {
                    let Some(owner) = payable_owner(connection, service_id, id, number)? else {
                        return Ok(false);
                    };
                    Some(owner)
                }
                // A nonce stays with its withdrawal unless it is moved to another one.
                NonceUse::Elsewhere { .. } | NonceUse::Undecided { .. } => former,
            };
            let settled = SettledNonce::new(nonce_use, owner);
            match stored {
                None => insert_settled(connection, service_id, number, &settled, used_at)?,
                Some(_) => update_settled(connection, service_id, number, &settled)?,
            }
            if withdrawal_of(owner) != withdrawal_of(former) {
                remove_transactions(connection, service_id, number)?;
            }
            if let NonceUse::Withdrawal { transaction, .. } = nonce_use {
                adopt(connection, service_id, number, transaction.clone(), now)?;
            }
            Ok(true)
        })
    }

    fn close_nonce(
        &self,
        service_id: &ServiceId,
        nonce: u64,
        outcome: &NonceOutcome,
    ) -> BatchResult<()> {
        let (number, outcome) = (to_stored("nonce", nonce)?, Some(outcome.clone()));
        let closed = ClosedNonce { nonce, note: String::new(), outcome, transaction: None };
        self.pools.write()?.transaction_with_lock_limit(LOCK_LIMIT, |connection| {
            let mut stored = lock_nonces(connection, service_id, slice::from_ref(&closed))?;
            let (stored, _) = stored.remove(&number).unzip();
            if check_outcome(service_id, nonce, stored, closed.outcome.as_ref())? {
                write_closed(connection, service_id, &[&closed])?;
            }
            Ok(())
        })
    }

    fn close_nonces(&self, service_id: &ServiceId, closed: &[ClosedNonce]) -> BatchResult<u64> {
        self.pools.write()?.transaction_with_lock_limit(LOCK_LIMIT, |connection| {
            let mut stored = lock_nonces(connection, service_id, closed)?;
            let mut open = Vec::with_capacity(closed.len());
            let (mut decided, mut paid) = (Vec::new(), 0);
            for closed in closed {
                let ClosedNonce { nonce, outcome, .. } = closed;
                let number = to_stored("nonce", *nonce)?;
                let (stored, is_failed) = stored.remove(&number).unzip();
                if check_outcome(service_id, *nonce, stored, outcome.as_ref())? {
                    open.push(closed);
                    match outcome.as_ref().filter(|_| is_failed == Some(true)) {
                        Some(NonceOutcome::Withdrawn { .. } | NonceOutcome::Executed { .. }) => {
                            decided.push(number);
                        }
                        Some(NonceOutcome::WithoutEvent) => paid += 1,
                        _ => {}
                    }
                }
            }
            if open.is_empty() {
                return Ok(0);
            }
            write_closed(connection, service_id, &open)?;
            if !decided.is_empty() {
                correct_ends(connection, service_id, &decided)?;
            }
            Ok(paid + decided.len() as u64)
        })
    }
}

/// Signs, and checks that the transaction has this nonce.
fn sign_with(nonce: u64, sign: &mut SignFn<'_>) -> BatchResult<NewSignedTransaction> {
    let signed = sign(nonce)?;
    if signed.nonce != nonce {
        let error = SigningError::WrongNonce { signed: signed.nonce, assigned: nonce };
        return Err(StoreError::from(error).into());
    }
    Ok(signed)
}

/// The statement that finds what may be unpaid of a beneficiary with an amount. Its other condition is the last one.
fn unpaid(name: &str, condition: &str) -> String {
    format!(
        "{name}
         select w.withdrawal_id, w.created_at as scheduled_at, n.nonce,
             b.dlt_status is null as is_open
         from withdrawals w
         join batches b on b.seq = w.batch_seq
         left join account_nonces n on n.withdrawal_seq = w.seq and n.outcome is null
         where w.beneficiary = ? and w.list_state in ('OPEN', 'INVALID')
             and w.service_id = ? and w.amount = ? and {condition}
             and coalesce(b.dlt_status, '') <> 'COMMITTED'
             and not exists (select 1 from account_nonces p
                 where p.withdrawal_seq = w.seq and p.outcome = 'WITHDRAWN')
         order by b.created_at, w.seq"
    )
}

result_row! {
    struct UnpaidRow {
        withdrawal_id: Vec<u8>,
        scheduled_at: i64,
        nonce: Option<i64>,
        is_open: bool,
    }
}

impl UnpaidRow {
    fn read(self) -> Result<UnpaidWithdrawal, StoreError> {
        Ok(UnpaidWithdrawal {
            id: WithdrawalId::try_from(&self.withdrawal_id[..]).map_err(StoreError::corrupt)?,
            created_at: Timestamp::from_micros(self.scheduled_at),
            is_open: self.is_open,
            nonce: self.nonce.map(whole).transpose()?,
        })
    }
}
