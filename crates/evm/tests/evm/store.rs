//! A signing store in memory, with the rules of the real one.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard},
};

use grid_batch_core::{AttemptId, BatchError, BatchResult, Clock, HeaderId, ServiceId};
use grid_batch_withdrawals::{
    AssignedNonce, BatchAttempt, NewSignedTransaction, NonceOutcome, Payment, SignFn,
    SignedTransaction, SigningStore, WithdrawalId,
};

#[derive(Debug)]
pub struct MemoryStore {
    clock: Arc<dyn Clock>,
    kept: Mutex<Kept>,
    broken: Mutex<Option<&'static str>>,
}

#[derive(Debug, Default)]
struct Kept {
    withdrawals: HashMap<WithdrawalId, (ServiceId, Payment)>,
    /// Those without a withdrawal were only filled.
    nonces: Vec<(ServiceId, Option<WithdrawalId>, AssignedNonce)>,
    failed: HashSet<HeaderId>,
    tickets: HashMap<HeaderId, AttemptId>,
}

impl MemoryStore {
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, kept: Mutex::default(), broken: Mutex::default() }
    }

    /// From now on this method fails, or none.
    pub fn fail(&self, method: impl Into<Option<&'static str>>) {
        *self.broken.lock().unwrap() = method.into();
    }

    fn check(&self, method: &str) -> BatchResult<()> {
        let is_broken = *self.broken.lock().unwrap() == Some(method);
        if is_broken { Err(error("it is broken")) } else { Ok(()) }
    }

    pub fn schedule(&self, service_id: &ServiceId, payment: Payment) {
        let kept = (service_id.clone(), payment);
        self.kept().withdrawals.insert(kept.1.withdrawal_id, kept);
    }

    /// Hands the withdrawal's batch to a submitter once more.
    pub fn hand_over(&self, id: WithdrawalId) -> (HeaderId, AttemptId) {
        let mut kept = self.kept();
        let batch_id = id.batch_id(kept.withdrawals[&id].1.generation);
        let attempt = kept.tickets.get(&batch_id).map_or(1, |attempt_id| attempt_id.attempt + 1);
        let attempt_id = AttemptId { attempt, epoch: 1 };
        kept.tickets.insert(batch_id, attempt_id);
        (batch_id, attempt_id)
    }

    pub fn change(&self, id: WithdrawalId, change: impl FnOnce(&mut Payment)) {
        change(&mut self.kept().withdrawals.get_mut(&id).unwrap().1);
    }

    pub fn generation(&self, id: WithdrawalId) -> u32 {
        self.kept().withdrawals[&id].1.generation
    }

    /// The nonces that a withdrawal ever had, the oldest first.
    pub fn nonces(&self, id: WithdrawalId) -> Vec<AssignedNonce> {
        let kept = self.kept();
        kept.nonces
            .iter()
            .filter(|(_, of, _)| *of == Some(id))
            .map(|(_, _, it)| it.clone())
            .collect()
    }

    /// A person finds that the withdrawal has come to nothing.
    pub fn decide_invalid(&self, id: WithdrawalId) {
        let mut kept = self.kept();
        let batch_id = id.batch_id(kept.withdrawals[&id].1.generation);
        kept.failed.insert(batch_id);
    }

    /// What was signed with each nonce that no withdrawal has, in order.
    pub fn fillers(&self) -> Vec<NewSignedTransaction> {
        let kept = self.kept();
        let fillers = kept.nonces.iter().filter(|(_, of, _)| of.is_none());
        fillers.flat_map(|(_, _, it)| &it.transactions).map(|it| it.signed.clone()).collect()
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap()
    }
}

impl Kept {
    fn payment(&self, service_id: &ServiceId, batch_id: &HeaderId) -> Option<Payment> {
        let is_meant =
            |payment: &Payment| payment.withdrawal_id.batch_id(payment.generation) == *batch_id;
        let found = self.withdrawals.values().find(|(of, it)| of == service_id && is_meant(it))?;
        Some(Payment { nonce: self.open(&found.1), ..found.1.clone() })
    }

    fn open(&self, payment: &Payment) -> Option<AssignedNonce> {
        let mut nonces = self.nonces.iter().rev();
        let (_, _, last) = nonces.find(|(_, of, _)| *of == Some(payment.withdrawal_id))?;
        let came_to_nothing = !matches!(last.outcome, None | Some(NonceOutcome::Withdrawn { .. }));
        let is_past = came_to_nothing && last.generation < payment.generation;
        (!is_past).then(|| last.clone())
    }

    fn nonce(&mut self, service_id: &ServiceId, nonce: u64) -> BatchResult<&mut AssignedNonce> {
        let mut nonces = self.nonces.iter_mut();
        let found = nonces.find(|(of, _, it)| of == service_id && it.nonce == nonce);
        found.map(|(_, _, it)| it).ok_or_else(|| error("there is no such nonce"))
    }

    /// Whether a payment with this nonce was, or may still be, made.
    fn may_pay(&self, withdrawal: Option<WithdrawalId>, open: &AssignedNonce) -> bool {
        let has_failed = |id: WithdrawalId| {
            self.failed.contains(&id.batch_id(self.withdrawals[&id].1.generation))
        };
        match open.outcome {
            None => withdrawal.is_some_and(|id| !has_failed(id)),
            Some(NonceOutcome::Withdrawn { .. }) => true,
            Some(_) => false,
        }
    }

    fn next_nonce(&self, service_id: &ServiceId) -> Option<u64> {
        let of_service = self.nonces.iter().filter(|(of, _, _)| of == service_id);
        of_service.map(|(_, _, it)| it.nonce + 1).max()
    }

    /// The withdrawal whose turn it is.
    fn whose_turn(&self, turn: &BatchAttempt) -> Option<Payment> {
        let is_present = self.tickets.get(&turn.batch_id) == Some(&turn.attempt_id);
        is_present.then(|| self.payment(&turn.service_id, &turn.batch_id))?
    }
}

impl SigningStore for MemoryStore {
    fn payment(&self, service_id: &ServiceId, batch_id: &HeaderId) -> BatchResult<Option<Payment>> {
        self.check("payment")?;
        Ok(self.kept().payment(service_id, batch_id))
    }

    fn assign_nonce(
        &self,
        turn: &BatchAttempt,
        at_least: u64,
        sign: &mut SignFn<'_>,
    ) -> BatchResult<Option<SignedTransaction>> {
        self.check("assign_nonce")?;
        let mut kept = self.kept();
        let Some(payment) = kept.whose_turn(turn) else { return Ok(None) };
        let forbids = |outcome: &Option<NonceOutcome>| {
            matches!(outcome, None | Some(NonceOutcome::Withdrawn { .. }))
        };
        let id = payment.withdrawal_id;
        if kept.nonces.iter().any(|(_, of, it)| *of == Some(id) && forbids(&it.outcome)) {
            return Ok(None);
        }
        let nonce = kept.next_nonce(&turn.service_id).unwrap_or_default().max(at_least);
        let signed = just_signed(sign(nonce)?, &*self.clock);
        let open = just_taken(payment.generation, &signed);
        kept.nonces.push((turn.service_id.clone(), Some(id), open));
        Ok(Some(signed))
    }

    fn replace_transaction(
        &self,
        turn: &BatchAttempt,
        signed: NewSignedTransaction,
    ) -> BatchResult<Option<SignedTransaction>> {
        self.check("replace_transaction")?;
        let mut kept = self.kept();
        let open = kept.whose_turn(turn).and_then(|payment| payment.nonce);
        if !open.is_some_and(|open| open.nonce == signed.nonce && open.outcome.is_none()) {
            return Ok(None);
        }
        let signed = just_signed(signed, &*self.clock);
        kept.nonce(&turn.service_id, signed.signed.nonce)?.transactions.push(signed.clone());
        Ok(Some(signed))
    }

    fn fill_nonce(
        &self,
        turn: &BatchAttempt,
        nonce: u64,
        sign: &mut SignFn<'_>,
    ) -> BatchResult<Option<SignedTransaction>> {
        self.check("fill_nonce")?;
        let mut kept = self.kept();
        let open = kept.whose_turn(turn).and_then(|payment| payment.nonce);
        if open.is_none_or(|open| open.nonce <= nonce) {
            return Ok(None);
        }
        let mut of_service = kept.nonces.iter().filter(|(of, _, _)| *of == turn.service_id);
        let found = of_service.find(|(_, _, it)| it.nonce == nonce);
        if found.is_some_and(|(_, withdrawal, open)| kept.may_pay(*withdrawal, open)) {
            return Ok(None);
        }
        let signed = just_signed(sign(nonce)?, &*self.clock);
        match kept.nonce(&turn.service_id, nonce) {
            Ok(open) => open.transactions.push(signed.clone()),
            Err(_) => kept.nonces.push((turn.service_id.clone(), None, just_taken(0, &signed))),
        }
        Ok(Some(signed))
    }

    fn next_nonce(&self, service_id: &ServiceId) -> BatchResult<Option<u64>> {
        self.check("next_nonce")?;
        Ok(self.kept().next_nonce(service_id))
    }

    fn transactions_from(
        &self,
        service_id: &ServiceId,
        nonce: u64,
    ) -> BatchResult<Vec<NewSignedTransaction>> {
        self.check("transactions_from")?;
        let kept = self.kept();
        let offered = |(of, withdrawal, open): &(ServiceId, _, AssignedNonce)| {
            let may_pay = kept.may_pay(*withdrawal, open);
            let signed = open.transactions.iter().map(|it| &it.signed);
            let best = signed.max_by_key(|it| (it.is_filler, it.max_fee))?;
            let is_asked_for = of == service_id && open.nonce >= nonce;
            (is_asked_for && (best.is_filler || may_pay)).then(|| best.clone())
        };
        let mut signed: Vec<_> = kept.nonces.iter().filter_map(offered).collect();
        signed.sort_by_key(|it| it.nonce);
        Ok(signed)
    }

    fn mark_sent(&self, hash: &[u8; 32], error: Option<&str>) -> BatchResult<()> {
        self.check("mark_sent")?;
        let now = self.clock.now();
        for (_, _, open) in &mut self.kept().nonces {
            for transaction in open.transactions.iter_mut().filter(|it| it.signed.hash == *hash) {
                transaction.sent_at = Some(now);
                transaction.last_error = error.map(ToOwned::to_owned);
            }
        }
        Ok(())
    }

    fn note(&self, service_id: &ServiceId, nonce: u64, note: Option<&str>) -> BatchResult<()> {
        self.check("note")?;
        self.kept().nonce(service_id, nonce)?.note = note.map(ToOwned::to_owned);
        Ok(())
    }

    fn record_foreign_use(
        &self,
        service_id: &ServiceId,
        nonce: u64,
        hash: &[u8; 32],
    ) -> BatchResult<()> {
        self.check("record_foreign_use")?;
        self.kept().nonce(service_id, nonce)?.foreign_hash = Some(*hash);
        Ok(())
    }

    fn close_nonce(
        &self,
        service_id: &ServiceId,
        nonce: u64,
        outcome: &NonceOutcome,
    ) -> BatchResult<()> {
        self.check("spend")?;
        let mut kept = self.kept();
        let open = kept.nonce(service_id, nonce)?;
        match &open.outcome {
            Some(other) if other != outcome => Err(error("it is spent otherwise")),
            _ => {
                open.outcome = Some(outcome.clone());
                Ok(())
            }
        }
    }
}

fn just_signed(signed: NewSignedTransaction, clock: &dyn Clock) -> SignedTransaction {
    SignedTransaction { signed, signed_at: clock.now(), sent_at: None, last_error: None }
}

fn just_taken(generation: u32, signed: &SignedTransaction) -> AssignedNonce {
    AssignedNonce {
        nonce: signed.signed.nonce,
        generation,
        assigned_at: signed.signed_at,
        note: None,
        foreign_hash: None,
        outcome: None,
        transactions: vec![signed.clone()],
    }
}

fn error(reason: &str) -> BatchError {
    BatchError::InternalError(reason.to_owned())
}
