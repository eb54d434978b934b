//! Operators' decisions about the nonces of an account.

use diesel::prelude::*;
use grid_batch_core::operators::{
    ActionEffect, ActionOutcome, ActionRefusal, OperatorAction, OperatorTarget, OperatorVerb,
};
use grid_batch_core::{ItemId, ServiceId};
use grid_batch_withdrawals::{NonceUse, WithdrawalId};

use super::{
    nonces::{NewNonce, find_payment, highest_nonce, insert_nonces},
    rows::{load_number, may_be_paid, to_stored, whole},
    settle::{decide_paid, insert_elsewhere},
};
use crate::{
    batch::lock_services,
    operator::try_again,
    sql::{
        Connection, Statement, Store, StoreError,
        rows::batch_id,
        schema::{lanes, services},
    },
};

/// Limit on the number of nonces that one action fills.
const MOST_FILLED: u64 = 10_000;
/// How many rows are inserted by one statement.
const STEP: usize = 500;

/// An operator's decision about the nonces from the first to the last one.
struct NoncesDecision<'a> {
    service_id: &'a ServiceId,
    first: u64,
    last: u64,
}

/// Carries out an operator's decision about nonces. The withdrawal that waited for it is tried again.
pub(super) fn act_on_nonces(
    store: &Store,
    connection: &mut Connection,
    action: &OperatorAction,
) -> Result<ActionOutcome, StoreError> {
    let (service_id, first, last, paid) = match &action.target {
        OperatorTarget::Nonces { service_id, first, last } => (service_id, *first, *last, None),
        OperatorTarget::PaidNonce { service_id, nonce, paid } => {
            (service_id, *nonce, *nonce, Some(paid))
        }
        _ => return Ok(ActionOutcome::Refused(ActionRefusal::WrongTarget { verb: action.verb })),
    };
    let reason = action.reason.as_deref();
    let decision = NoncesDecision { service_id, first, last };
    lock_services(connection, [service_id])?;
    if !is_stored(connection, service_id)? {
        return Ok(ActionOutcome::NotFound);
    }
    let decided = match (action.verb, paid) {
        (OperatorVerb::PayNonce, Some(paid)) => decision.paid(connection, paid)?,
        (OperatorVerb::NoncesElsewhere, None) => decision.elsewhere(connection)?,
        (OperatorVerb::StartNonce, None) => decision.start(store, connection)?,
        (OperatorVerb::FillNonces, None) => decision.fill(store, connection)?,
        (verb, _) => Err(ActionRefusal::WrongTarget { verb }),
    };
    Ok(match decided {
        Ok((before, after)) => {
            let next_waits = try_heads_again(store, connection, service_id, reason)?;
            ActionOutcome::Done(ActionEffect { before, after, state: None, next_waits })
        }
        Err(refusal) => ActionOutcome::Refused(refusal),
    })
}

/// The nonces before and after, in words, or why the action is refused.
type Decided = Result<(String, String), ActionRefusal>;

impl NoncesDecision<'_> {
    /// Closes the undecided ones of these nonces as used for no open withdrawal. Nonces without the event of a pool are
    /// decided as having paid nothing.
    fn elsewhere(&self, connection: &mut Connection) -> Result<Decided, StoreError> {
        let closed = close_undecided(connection, self.service_id, self.first, self.last)?
            + end_as_not_paid(connection, self.service_id, self.first, self.last)?;
        if closed == 0 {
            return Ok(Err(ActionRefusal::NotUndecided));
        }
        let Self { first, last, .. } = self;
        let after =
            format!("{closed} nonces from {first} to {last} were used for no open withdrawal");
        Ok(Ok((format!("{closed} undecided nonces"), after)))
    }

    /// Records that the single nonce was used for this withdrawal.
    fn paid(&self, connection: &mut Connection, paid: &ItemId) -> Result<Decided, StoreError> {
        let nonce = self.first;
        let withdrawal = paid.to_string().parse::<WithdrawalId>();
        let is_decided = match &withdrawal {
            Ok(paid) => decide_paid(connection, self.service_id, nonce, paid)?,
            Err(_) => false,
        };
        if !is_decided {
            return Ok(Err(ActionRefusal::NotPaid { nonce }));
        }
        let after = format!("nonce {nonce} was used for {paid}");
        Ok(Ok((format!("nonce {nonce} is undecided"), after)))
    }

    /// Makes the first one the next nonce, so that all lower ones count as used. Refused if a transaction is signed
    /// with it or with a higher one.
    fn start(&self, store: &Store, connection: &mut Connection) -> Result<Decided, StoreError> {
        let (service_id, start) = (self.service_id, self.first);
        let next = highest_nonce(connection, service_id)?.map_or(0, |highest| highest + 1);
        let closed = match start.checked_sub(1) {
            Some(last) => close_undecided(connection, service_id, 0, last)?,
            None => 0,
        };
        if next == start && closed == 0 {
            return Ok(Err(ActionRefusal::AlreadyNext { nonce: start }));
        }
        if next > start
            && let Some(nonce) = first_with_withdrawal(connection, service_id, start)?
        {
            return Ok(Err(ActionRefusal::Signed { nonce }));
        }
        remove_nonces(connection, service_id, start)?;
        let highest = highest_nonce(connection, service_id)?;
        if let Some(last) = start.checked_sub(1).filter(|last| highest != Some(*last)) {
            let note = format!("an operator decided that the next nonce is {start}");
            let nonce_use = NonceUse::Elsewhere { hash: None, note };
            insert_elsewhere(connection, service_id, last, &nonce_use, store.now())?;
        }
        let after = format!("the next nonce is {start}");
        Ok(Ok((format!("the next nonce was {next}"), after)))
    }

    /// Stores the free ones of these nonces without a withdrawal, so that fillers are signed for them.
    fn fill(&self, store: &Store, connection: &mut Connection) -> Result<Decided, StoreError> {
        let Self { service_id, first, last, .. } = *self;
        if last.saturating_sub(first) >= MOST_FILLED {
            return Ok(Err(ActionRefusal::TooManyNonces { most: MOST_FILLED }));
        }
        if first_with_withdrawal(connection, service_id, last.saturating_add(1))?.is_none() {
            return Ok(Err(ActionRefusal::NothingWaits));
        }
        let stored = stored_between(connection, service_id, first, last)?;
        let free = (first..=last).filter(|nonce| !stored.contains(nonce));
        let free: Vec<NewNonce> = free.map(|nonce| NewNonce { nonce, owner: None }).collect();
        if free.is_empty() {
            return Ok(Err(ActionRefusal::NothingToFill));
        }
        for step in free.chunks(STEP) {
            insert_nonces(connection, service_id, step, store.now())?;
        }
        note_filled(connection, service_id, first, last)?;
        let count = free.len();
        let after =
            format!("{count} nonces from {first} to {last} are filled with empty transfers");
        Ok(Ok((format!("{count} free nonces"), after)))
    }
}

/// Makes those withdrawals due that are next or under way and waited for the decision.
pub(super) fn try_heads_again(
    store: &Store,
    connection: &mut Connection,
    service_id: &ServiceId,
    reason: Option<&str>,
) -> Result<bool, StoreError> {
    let query = lanes::table
        .filter(lanes::service_id.eq(service_id.as_str()))
        .filter(lanes::busy)
        .select(lanes::batch_id);
    let heads: Vec<Option<Vec<u8>>> = connection.load_query("heads_of_account", query)?;
    let mut next_waits = false;
    for head in heads.into_iter().flatten() {
        let head = batch_id(&head)?;
        let payment = find_payment(connection, service_id, &head)?;
        let Some(payment) = payment.map(|stored| stored.payment) else { continue };
        let never_sent = payment.nonce.as_ref().is_none_or(|nonce| !may_be_paid(nonce));
        next_waits |= try_again(store, connection, service_id, &head, never_sent, reason)?;
    }
    Ok(next_waits)
}

fn is_stored(connection: &mut Connection, service_id: &ServiceId) -> Result<bool, StoreError> {
    let query = services::table.find(service_id.as_str()).select(services::service_id);
    let found: Vec<String> = connection.load_query("service_of_nonces", query)?;
    Ok(!found.is_empty())
}

fn close_undecided(
    connection: &mut Connection,
    service_id: &ServiceId,
    first: u64,
    last: u64,
) -> Result<usize, StoreError> {
    let statement = Statement::new(
        "-- close_undecided_nonces
         update account_nonces
         set outcome = 'USED_ELSEWHERE', undecided = false,
             note = 'an operator decided that it was used for no open withdrawal'
         where service_id = ? and nonce >= ? and nonce <= ?
             and coalesce(outcome, '') = '' and undecided",
    )
    .text(service_id.as_str())
    .long(to_stored("nonce", first)?)
    .long(to_stored("nonce", last)?);
    connection.execute(&statement)
}

/// Records that withdrawals whose transactions succeeded without the event of the pool were not made.
fn end_as_not_paid(
    connection: &mut Connection,
    service_id: &ServiceId,
    first: u64,
    last: u64,
) -> Result<usize, StoreError> {
    let (first, last) = (to_stored("nonce", first)?, to_stored("nonce", last)?);
    let withdraw = Statement::new(
        "-- withdraw_payments
         update account_nonces
         set outcome = 'USED_ELSEWHERE', pool_withdrawal_id = null
         where service_id = ? and nonce >= ? and nonce <= ? and pool_withdrawal_id = ''
             and (select w.list_state from withdrawals w
                  join batches b on b.seq = w.batch_seq and b.dlt_status is not null
                  where w.seq = account_nonces.withdrawal_seq) = 'OPEN'",
    );
    let withdraw = withdraw.text(service_id.as_str()).long(first).long(last);
    let withdrawn = connection.execute(&withdraw)?;
    if withdrawn == 0 {
        return Ok(0);
    }
    // Among withdrawals whose batches have ended, only these have no end.
    let end = Statement::new(
        "-- end_as_not_paid
         update withdrawals set list_state = 'INVALID'
         where seq in (select n.withdrawal_seq from account_nonces n
                       where n.service_id = ? and n.nonce >= ? and n.nonce <= ?
                           and n.outcome = 'USED_ELSEWHERE')
             and list_state = 'OPEN'
             and (select b.dlt_status from batches b where b.seq = withdrawals.batch_seq) is not null",
    );
    connection.execute(&end.text(service_id.as_str()).long(first).long(last))?;
    Ok(withdrawn)
}

/// The first nonce from this one on that was assigned to a withdrawal, or with which a transaction was signed.
fn first_with_withdrawal(
    connection: &mut Connection,
    service_id: &ServiceId,
    from: u64,
) -> Result<Option<u64>, StoreError> {
    let statement = Statement::new(
        "-- first_signed_nonce
         select min(n.nonce) as number from account_nonces n
         where n.service_id = ? and n.nonce >= ?
             and (n.withdrawal_seq is not null or exists (
                 select 1 from signed_transactions k
                 where k.service_id = n.service_id and k.nonce = n.nonce))",
    )
    .text(service_id.as_str())
    .long(to_stored("nonce", from)?);
    load_number(connection, &statement)?.map(whole).transpose()
}

fn stored_between(
    connection: &mut Connection,
    service_id: &ServiceId,
    first: u64,
    last: u64,
) -> Result<Vec<u64>, StoreError> {
    let statement = Statement::new(
        "-- stored_nonces
         select n.nonce as number from account_nonces n
         where n.service_id = ? and n.nonce >= ? and n.nonce <= ? order by n.nonce",
    )
    .text(service_id.as_str())
    .long(to_stored("nonce", first)?)
    .long(to_stored("nonce", last)?);
    connection.load_column::<i64>(&statement)?.into_iter().map(whole).collect()
}

/// Records that an operator requested to fill these nonces, so that they do not count as missing.
fn note_filled(
    connection: &mut Connection,
    service_id: &ServiceId,
    first: u64,
    last: u64,
) -> Result<(), StoreError> {
    let statement = Statement::new(
        "-- note_filled_nonces
         update account_nonces set note = 'an operator decided that it is filled'
         where service_id = ? and nonce >= ? and nonce <= ?
             and withdrawal_seq is null and coalesce(outcome, '') = '' and not undecided",
    )
    .text(service_id.as_str())
    .long(to_stored("nonce", first)?)
    .long(to_stored("nonce", last)?);
    connection.execute(&statement).map(drop)
}

/// Removes this nonce and all higher ones, with which no transaction is signed.
fn remove_nonces(
    connection: &mut Connection,
    service_id: &ServiceId,
    from: u64,
) -> Result<(), StoreError> {
    let statement = Statement::new(
        "-- remove_nonces
         delete from account_nonces where service_id = ? and nonce >= ?",
    )
    .text(service_id.as_str())
    .long(to_stored("nonce", from)?);
    connection.execute(&statement).map(drop)
}
