//! A signing store in memory, with the same rules as the real one.

use std::{
    collections::{HashMap, HashSet},
    ops::Range,
    sync::{Arc, Mutex, MutexGuard},
};

use grid_batch_core::ledger::AttemptId;
use grid_batch_core::{BatchError, BatchResult, Clock, ItemId, ServiceId, Timestamp};
use grid_batch_withdrawals::{
    AssignedNonce, BatchAttempt, ClosedNonce, FollowingPayment, FollowingPayments,
    NewSignedTransaction, NonceOutcome, NonceUse, Payment, SignFn, SignedTransaction, SigningStore,
    Terms, UnpaidWithdrawal, UnsettledNonce, UnsettledNonces, WithdrawalId,
};

#[derive(Debug)]
pub struct MemoryStore {
    clock: Arc<dyn Clock>,
    state: Mutex<StoreState>,
    failing_method: Mutex<Option<&'static str>>,
}

#[derive(Debug, Default, Clone)]
pub struct StoreState {
    withdrawals: HashMap<WithdrawalId, (ServiceId, Payment)>,
    /// A nonce without a withdrawal has only fillers.
    nonces: Vec<(ServiceId, Option<WithdrawalId>, AssignedNonce)>,
    failed: HashSet<ItemId>,
    /// The withdrawals that were scheduled before a copy was restored.
    restored: HashSet<WithdrawalId>,
    held: HashSet<WithdrawalId>,
    /// The parked pools whose first withdrawals are due.
    due_pools: Vec<String>,
    attempts: HashMap<ItemId, AttemptId>,
    /// The withdrawals in order, and when they were scheduled.
    scheduled: Vec<(WithdrawalId, Timestamp)>,
    /// Why nonces are undecided.
    undecided: HashMap<u64, String>,
    highest_block: Option<u64>,
}

impl MemoryStore {
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, state: Mutex::default(), failing_method: Mutex::default() }
    }

    /// Makes this method fail from now on; `None`: no method.
    pub fn fail_method(&self, method: impl Into<Option<&'static str>>) {
        *self.failing_method.lock().unwrap() = method.into();
    }

    fn check(&self, method: &str) -> BatchResult<()> {
        let is_broken = *self.failing_method.lock().unwrap() == Some(method);
        if is_broken { Err(error("the method fails")) } else { Ok(()) }
    }

    pub fn schedule(&self, service_id: &ServiceId, payment: Payment) {
        let (id, now) = (payment.withdrawal_id, self.clock.now());
        let mut state = self.state();
        state.scheduled.push((id, now));
        state.withdrawals.insert(id, (service_id.clone(), payment));
    }

    /// A copy of everything that is stored.
    pub fn copy(&self) -> StoreState {
        self.state().clone()
    }

    /// Restores a copy, like a backup. Attempts that were started stay started.
    pub fn restore(&self, copy: &StoreState) {
        let mut state = self.state();
        let attempts = state.attempts.clone();
        let restored = copy.withdrawals.keys().copied().collect();
        *state = StoreState { attempts, restored, ..copy.clone() };
    }

    /// Applies an operator's decision that an undecided nonce was used for no withdrawal.
    pub fn decide_elsewhere(&self, service_id: &ServiceId, nonce: u64) {
        let mut state = self.state();
        state.undecided.remove(&nonce);
        state.nonce(service_id, nonce).unwrap().outcome = Some(NonceOutcome::UsedElsewhere);
    }

    /// Applies an operator's decision to fill these free nonces.
    pub fn decide_fill(&self, service_id: &ServiceId, nonces: Range<u64>) {
        let (mut state, now) = (self.state(), self.clock.now());
        let free = nonces.filter(|nonce| state.nonces.iter().all(|(.., it)| it.nonce != *nonce));
        let free: Vec<u64> = free.collect();
        let note = Some("to be filled".to_owned());
        for (_, withdrawal, stored) in &mut state.nonces {
            if withdrawal.is_none() && stored.outcome.is_none() {
                stored.note = note.clone();
            }
        }
        let to_fill = |it| AssignedNonce { note: note.clone(), ..unassigned_nonce(it, now) };
        state.nonces.extend(free.into_iter().map(|it| (service_id.clone(), None, to_fill(it))));
    }

    /// Starts the next attempt of the withdrawal's batch.
    pub fn start_attempt(&self, id: WithdrawalId) -> (ItemId, AttemptId) {
        let mut state = self.state();
        let batch_id = id.batch_id(state.withdrawals[&id].1.generation);
        let attempt = state.attempts.get(&batch_id).map_or(1, |attempt_id| attempt_id.attempt + 1);
        let attempt_id = AttemptId { attempt, epoch: 1 };
        state.attempts.insert(batch_id, attempt_id);
        (batch_id, attempt_id)
    }

    pub fn change(&self, id: WithdrawalId, change: impl FnOnce(&mut Payment)) {
        change(&mut self.state().withdrawals.get_mut(&id).unwrap().1);
    }

    pub fn generation(&self, id: WithdrawalId) -> u32 {
        self.state().withdrawals[&id].1.generation
    }

    /// All nonces that were assigned to a withdrawal, the oldest first.
    pub fn nonces(&self, id: WithdrawalId) -> Vec<AssignedNonce> {
        let state = self.state();
        state
            .nonces
            .iter()
            .filter(|(_, of, _)| *of == Some(id))
            .map(|(_, _, it)| it.clone())
            .collect()
    }

    /// Applies an operator's decision that the withdrawal is invalid.
    pub fn decide_invalid(&self, id: WithdrawalId) {
        let mut state = self.state();
        let batch_id = id.batch_id(state.withdrawals[&id].1.generation);
        state.failed.insert(batch_id);
    }

    /// Holds the withdrawal, as an operator does.
    pub fn hold(&self, id: WithdrawalId) {
        self.state().held.insert(id);
    }

    pub fn release(&self, id: WithdrawalId) {
        self.state().held.remove(&id);
    }

    /// Makes the first withdrawals of these parked pools due.
    pub fn set_due_pools(&self, pools: &[&str]) {
        self.state().due_pools = pools.iter().map(ToString::to_string).collect();
    }

    /// The fillers of nonces without a withdrawal, in order.
    pub fn fillers(&self) -> Vec<NewSignedTransaction> {
        let state = self.state();
        let fillers = state.nonces.iter().filter(|(_, of, _)| of.is_none());
        fillers.flat_map(|(_, _, it)| &it.transactions).map(|it| it.signed.clone()).collect()
    }

    fn state(&self) -> MutexGuard<'_, StoreState> {
        self.state.lock().unwrap()
    }
}

impl StoreState {
    fn payment(&self, service_id: &ServiceId, batch_id: &ItemId) -> Option<Payment> {
        let is_current =
            |payment: &Payment| payment.withdrawal_id.batch_id(payment.generation) == *batch_id;
        let found =
            self.withdrawals.values().find(|(of, it)| of == service_id && is_current(it))?;
        Some(self.payment_of(&found.1))
    }

    fn payment_of(&self, stored: &Payment) -> Payment {
        let is_restored = self.restored.contains(&stored.withdrawal_id);
        Payment { nonce: self.nonce_of(stored), is_restored, ..stored.clone() }
    }

    fn nonce_of(&self, payment: &Payment) -> Option<AssignedNonce> {
        let mut nonces = self.nonces.iter().rev();
        let (_, _, last) = nonces.find(|(_, of, _)| *of == Some(payment.withdrawal_id))?;
        let did_not_pay = !matches!(
            last.outcome,
            None | Some(
                NonceOutcome::Withdrawn { .. }
                    | NonceOutcome::Executed { .. }
                    | NonceOutcome::WithoutEvent
            )
        );
        let is_past = did_not_pay && last.generation < payment.generation;
        (!is_past).then(|| last.clone())
    }

    fn nonce(&mut self, service_id: &ServiceId, nonce: u64) -> BatchResult<&mut AssignedNonce> {
        let mut nonces = self.nonces.iter_mut();
        let found = nonces.find(|(of, _, it)| of == service_id && it.nonce == nonce);
        found.map(|(_, _, it)| it).ok_or_else(|| error("the nonce is not stored"))
    }

    /// Whether an operator has decided that the withdrawal is invalid.
    fn has_failed(&self, id: WithdrawalId) -> bool {
        self.failed.contains(&id.batch_id(self.withdrawals[&id].1.generation))
    }

    /// Whether a payment with this nonce was made, or may still be made.
    fn may_pay(&self, withdrawal: Option<WithdrawalId>, assigned: &AssignedNonce) -> bool {
        let has_failed = |id: WithdrawalId| {
            self.failed.contains(&id.batch_id(self.withdrawals[&id].1.generation))
        };
        match assigned.outcome {
            None => withdrawal.is_some_and(|id| !has_failed(id)),
            Some(
                NonceOutcome::Withdrawn { .. }
                | NonceOutcome::Executed { .. }
                | NonceOutcome::WithoutEvent,
            ) => true,
            Some(_) => false,
        }
    }

    fn next_nonce(&self, service_id: &ServiceId) -> Option<u64> {
        let of_service = self.nonces.iter().filter(|(of, _, _)| of == service_id);
        of_service.map(|(_, _, it)| it.nonce + 1).max()
    }

    /// The withdrawals that were scheduled after that of a batch. A batch that was tried counts as accepted.
    fn following(
        &self,
        service_id: &ServiceId,
        batch_id: &ItemId,
        count: usize,
    ) -> Option<FollowingPayments> {
        let attempt_id = *self.attempts.get(batch_id)?;
        let head = self.payment(service_id, batch_id)?.withdrawal_id;
        let behind = self.scheduled.iter().skip_while(|(id, _)| *id != head).skip(1);
        let payments = behind
            .filter(|(id, _)| !self.has_failed(*id))
            .map(|(id, _)| self.following_payment(*id));
        Some(FollowingPayments {
            head: BatchAttempt { service_id: service_id.clone(), batch_id: *batch_id, attempt_id },
            is_under_way: !self.held.contains(&head),
            next_nonce: self.next_nonce(service_id).unwrap_or_default(),
            has_unsettled: !self.unsettled(service_id).is_empty(),
            payments: payments.take(count).collect(),
            due_pools: self.due_pools.clone(),
        })
    }

    fn following_payment(&self, id: WithdrawalId) -> FollowingPayment {
        let payment = self.payment_of(&self.withdrawals[&id].1);
        let batch_id = id.batch_id(payment.generation);
        FollowingPayment { batch_id, is_held: self.held.contains(&id), payment }
    }

    /// The nonces without an outcome that belong to no withdrawal in progress, the lowest first.
    fn unsettled(&self, service_id: &ServiceId) -> Vec<UnsettledNonce> {
        let is_unsettled =
            |(of, withdrawal, it): &&(ServiceId, Option<WithdrawalId>, AssignedNonce)| {
                let has_ended = withdrawal.is_none_or(|id| self.has_failed(id));
                of == service_id && it.outcome.is_none() && has_ended
            };
        let unsettled =
            self.nonces.iter().filter(is_unsettled).map(|(_, withdrawal, it)| UnsettledNonce {
                nonce: it.nonce,
                undecided: self.undecided.get(&it.nonce).cloned(),
                to_fill: withdrawal.is_none() && it.note.is_some(),
                hashes: it.transactions.iter().map(|it| it.signed.hash).collect(),
            });
        let mut unsettled: Vec<_> = unsettled.collect();
        unsettled.sort_by_key(|it| it.nonce);
        unsettled
    }

    /// The withdrawal, if the attempt is current.
    fn current_payment(&self, attempt: &BatchAttempt) -> Option<Payment> {
        let is_present = self.attempts.get(&attempt.batch_id) == Some(&attempt.attempt_id);
        is_present.then(|| self.payment(&attempt.service_id, &attempt.batch_id))?
    }
}

impl SigningStore for MemoryStore {
    fn payment(&self, service_id: &ServiceId, batch_id: &ItemId) -> BatchResult<Option<Payment>> {
        self.check("payment")?;
        Ok(self.state().payment(service_id, batch_id))
    }

    fn assign_nonce(
        &self,
        attempt: &BatchAttempt,
        at_least: u64,
        sign: &mut SignFn<'_>,
    ) -> BatchResult<Option<SignedTransaction>> {
        self.check("assign_nonce")?;
        let mut state = self.state();
        let Some(payment) = state.current_payment(attempt) else { return Ok(None) };
        let blocks = |outcome: &Option<NonceOutcome>| {
            matches!(
                outcome,
                None | Some(
                    NonceOutcome::Withdrawn { .. }
                        | NonceOutcome::Executed { .. }
                        | NonceOutcome::WithoutEvent
                )
            )
        };
        if !state.undecided.is_empty() {
            return Ok(None);
        }
        let id = payment.withdrawal_id;
        if state.nonces.iter().any(|(_, of, it)| *of == Some(id) && blocks(&it.outcome)) {
            return Ok(None);
        }
        let nonce = state.next_nonce(&attempt.service_id).unwrap_or_default().max(at_least);
        let signed = new_transaction(sign(nonce)?, &*self.clock);
        let assigned = new_nonce(payment.generation, &signed);
        state.nonces.push((attempt.service_id.clone(), Some(id), assigned));
        Ok(Some(signed))
    }

    fn replace_transaction(
        &self,
        attempt: &BatchAttempt,
        signed: NewSignedTransaction,
    ) -> BatchResult<Option<SignedTransaction>> {
        self.check("replace_transaction")?;
        let mut state = self.state();
        let assigned = state.current_payment(attempt).and_then(|payment| payment.nonce);
        if !assigned
            .is_some_and(|assigned| assigned.nonce == signed.nonce && assigned.outcome.is_none())
        {
            return Ok(None);
        }
        let signed = new_transaction(signed, &*self.clock);
        state.nonce(&attempt.service_id, signed.signed.nonce)?.transactions.push(signed.clone());
        Ok(Some(signed))
    }

    fn fill_nonce(
        &self,
        attempt: &BatchAttempt,
        nonce: u64,
        sign: &mut SignFn<'_>,
    ) -> BatchResult<Option<SignedTransaction>> {
        self.check("fill_nonce")?;
        let mut state = self.state();
        let assigned = state.current_payment(attempt).and_then(|payment| payment.nonce);
        if assigned.is_none_or(|assigned| assigned.nonce <= nonce) {
            return Ok(None);
        }
        let mut of_service = state.nonces.iter().filter(|(of, _, _)| *of == attempt.service_id);
        let found = of_service.find(|(_, _, it)| it.nonce == nonce);
        let is_cancelled = |id: WithdrawalId| state.withdrawals[&id].1.cancel_requested;
        if found.is_some_and(|(_, withdrawal, assigned)| {
            let is_cancelled = assigned.outcome.is_none() && withdrawal.is_some_and(is_cancelled);
            state.may_pay(*withdrawal, assigned) && !is_cancelled
        }) {
            return Ok(None);
        }
        let signed = new_transaction(sign(nonce)?, &*self.clock);
        match state.nonce(&attempt.service_id, nonce) {
            Ok(assigned) => assigned.transactions.push(signed.clone()),
            Err(_) => state.nonces.push((attempt.service_id.clone(), None, new_nonce(0, &signed))),
        }
        Ok(Some(signed))
    }

    fn following_payments(
        &self,
        service_id: &ServiceId,
        batch_id: &ItemId,
        count: usize,
    ) -> BatchResult<Option<FollowingPayments>> {
        self.check("following_payments")?;
        Ok(self.state().following(service_id, batch_id, count))
    }

    fn sign_following(
        &self,
        following: &FollowingPayments,
        signed: Vec<NewSignedTransaction>,
    ) -> BatchResult<bool> {
        self.check("sign_following")?;
        let mut state = self.state();
        let BatchAttempt { service_id, batch_id, .. } = &following.head;
        let present = state.following(service_id, batch_id, following.payments.len());
        let is_unchanged = present.is_some_and(|present| {
            let ids = |it: &FollowingPayments| -> Vec<_> {
                it.unsigned().map(|it| it.batch_id).collect()
            };
            present.head == following.head
                && present.next_nonce == following.next_nonce
                && ids(&present) == ids(following)
        });
        if !is_unchanged || !state.undecided.is_empty() {
            return Ok(false);
        }
        for (following, signed) in following.unsigned().zip(signed) {
            let Payment { withdrawal_id, generation, .. } = following.payment;
            let signed = new_transaction(signed, &*self.clock);
            let assigned = new_nonce(generation, &signed);
            state.nonces.push((service_id.clone(), Some(withdrawal_id), assigned));
        }
        Ok(true)
    }

    fn replace_following(
        &self,
        following: &FollowingPayments,
        signed: Vec<NewSignedTransaction>,
    ) -> BatchResult<bool> {
        self.check("replace_following")?;
        let mut state = self.state();
        let BatchAttempt { service_id, batch_id, .. } = &following.head;
        let present = state.following(service_id, batch_id, following.payments.len());
        if present.is_none_or(|present| present.head != following.head) {
            return Ok(false);
        }
        let is_open = |signed: &NewSignedTransaction| {
            let mut nonces = state.nonces.iter();
            nonces.any(|(of, id, it)| {
                let is_it = of == service_id && it.nonce == signed.nonce && it.outcome.is_none();
                is_it && id.is_some_and(|id| !state.withdrawals[&id].1.cancel_requested)
            })
        };
        if !signed.iter().all(is_open) {
            return Ok(false);
        }
        for signed in signed {
            let signed = new_transaction(signed, &*self.clock);
            state.nonce(service_id, signed.signed.nonce)?.transactions.push(signed);
        }
        Ok(true)
    }

    fn next_nonce(&self, service_id: &ServiceId) -> BatchResult<Option<u64>> {
        self.check("next_nonce")?;
        Ok(self.state().next_nonce(service_id))
    }

    fn transactions_from(
        &self,
        service_id: &ServiceId,
        nonce: u64,
    ) -> BatchResult<Vec<NewSignedTransaction>> {
        self.check("transactions_from")?;
        let state = self.state();
        let to_send = |(of, withdrawal, assigned): &(ServiceId, _, AssignedNonce)| {
            let may_pay = state.may_pay(*withdrawal, assigned);
            let signed = assigned.transactions.iter().map(|it| &it.signed);
            let best = signed.max_by_key(|it| (it.is_filler, it.max_fee))?;
            let is_selected = of == service_id && assigned.nonce >= nonce;
            (is_selected && (best.is_filler || may_pay)).then(|| best.clone())
        };
        let mut signed: Vec<_> = state.nonces.iter().filter_map(to_send).collect();
        signed.sort_by_key(|it| it.nonce);
        Ok(signed)
    }

    fn open_payments_from(
        &self,
        service_id: &ServiceId,
        nonce: u64,
    ) -> BatchResult<Vec<FollowingPayment>> {
        self.check("open_payments_from")?;
        let state = self.state();
        let open = state
            .nonces
            .iter()
            .filter(|(of, _, it)| of == service_id && it.nonce >= nonce && it.outcome.is_none());
        let open = open.filter_map(|(_, withdrawal, _)| *withdrawal);
        let open = open.filter(|id| !state.has_failed(*id));
        let mut open: Vec<_> = open.map(|id| state.following_payment(id)).collect();
        open.sort_by_key(|it| it.payment.nonce.as_ref().map(|it| it.nonce));
        Ok(open)
    }

    fn mark_sent(&self, hash: &[u8; 32], error: Option<&str>) -> BatchResult<()> {
        self.check("mark_sent")?;
        let now = self.clock.now();
        for (_, _, assigned) in &mut self.state().nonces {
            for transaction in assigned.transactions.iter_mut().filter(|it| it.signed.hash == *hash)
            {
                transaction.sent_at = Some(now);
                transaction.last_error = error.map(ToOwned::to_owned);
            }
        }
        Ok(())
    }

    fn note(&self, service_id: &ServiceId, nonce: u64, note: Option<&str>) -> BatchResult<()> {
        self.check("note")?;
        self.state().nonce(service_id, nonce)?.note = note.map(ToOwned::to_owned);
        Ok(())
    }

    fn record_foreign_use(
        &self,
        service_id: &ServiceId,
        nonce: u64,
        hash: &[u8; 32],
    ) -> BatchResult<()> {
        self.check("record_foreign_use")?;
        self.state().nonce(service_id, nonce)?.foreign_hash = Some(*hash);
        Ok(())
    }

    fn close_nonce(
        &self,
        service_id: &ServiceId,
        nonce: u64,
        outcome: &NonceOutcome,
    ) -> BatchResult<()> {
        self.check("close_nonce")?;
        let mut state = self.state();
        let assigned = state.nonce(service_id, nonce)?;
        match &assigned.outcome {
            Some(other) if other != outcome => Err(error("another outcome is stored")),
            _ => {
                assigned.outcome = Some(outcome.clone());
                Ok(())
            }
        }
    }

    fn close_nonces(&self, service_id: &ServiceId, closed: &[ClosedNonce]) -> BatchResult<u64> {
        for ClosedNonce { nonce, note, outcome, transaction } in closed {
            self.note(service_id, *nonce, Some(note))?;
            if let Some(outcome) = outcome {
                self.close_nonce(service_id, *nonce, outcome)?;
            }
            self.state().nonce(service_id, *nonce)?.final_transaction = transaction.clone();
        }
        Ok(0)
    }

    fn highest_block(&self) -> BatchResult<Option<u64>> {
        self.check("highest_block")?;
        Ok(self.state().highest_block)
    }

    fn record_highest_block(&self, number: u64) -> BatchResult<()> {
        self.check("record_highest_block")?;
        let mut state = self.state();
        state.highest_block = state.highest_block.max(Some(number));
        Ok(())
    }

    fn unsettled_nonces(&self, service_id: &ServiceId) -> BatchResult<UnsettledNonces> {
        self.check("unsettled_nonces")?;
        let state = self.state();
        let stored = state.unsettled(service_id);
        Ok(UnsettledNonces { next: state.next_nonce(service_id), stored })
    }

    fn unsettled_since(&self, service_id: &ServiceId) -> BatchResult<Option<Timestamp>> {
        self.check("unsettled_since")?;
        let state = self.state();
        let of_service = state.nonces.iter().filter(|(of, _, _)| of == service_id);
        let highest = of_service.max_by_key(|(_, _, it)| it.nonce).map(|(_, _, it)| it.assigned_at);
        let first = state.scheduled.first().map(|(_, scheduled_at)| *scheduled_at);
        Ok(highest.or(first))
    }

    fn first_open(&self, _service_id: &ServiceId) -> BatchResult<Option<Timestamp>> {
        self.check("first_open")?;
        let state = self.state();
        let has_ended = |id: WithdrawalId| {
            state.has_failed(id)
                || state.nonces.iter().any(|(_, of, it)| *of == Some(id) && it.outcome.is_some())
        };
        let mut open = state.scheduled.iter().filter(|(id, _)| !has_ended(*id));
        Ok(open.next().map(|(_, scheduled_at)| *scheduled_at))
    }

    fn pools(&self, _service_id: &ServiceId) -> BatchResult<Vec<String>> {
        self.check("pools")?;
        Ok(self.state().withdrawals.values().map(|(_, payment)| payment.pool.clone()).collect())
    }

    fn has_paid(&self, pool: &str) -> BatchResult<bool> {
        self.check("has_paid")?;
        let state = self.state();
        Ok(state.nonces.iter().any(|(_, id, nonce)| {
            let is_paid = matches!(nonce.outcome, Some(NonceOutcome::Withdrawn { .. }));
            is_paid && id.is_some_and(|id| state.withdrawals[&id].1.pool == pool)
        }))
    }

    fn unpaid_withdrawals(
        &self,
        service_id: &ServiceId,
        terms: &Terms,
    ) -> BatchResult<Vec<UnpaidWithdrawal>> {
        self.check("unpaid_withdrawals")?;
        let state = self.state();
        let unpaid = state.scheduled.iter().filter_map(|(id, created_at)| {
            let (of, payment) = &state.withdrawals[id];
            let has_terms = of == service_id && has_terms(payment, terms);
            let mut nonces = state.nonces.iter().filter(|(_, of, _)| *of == Some(*id));
            let is_paid = nonces.clone().any(|(_, _, it)| {
                let outcome = it.outcome.as_ref();
                matches!(
                    outcome,
                    Some(NonceOutcome::Withdrawn { .. } | NonceOutcome::Executed { .. })
                )
            });
            let open = nonces.find(|(_, _, it)| it.outcome.is_none());
            (has_terms && !is_paid).then(|| UnpaidWithdrawal {
                id: *id,
                created_at: *created_at,
                is_open: !state.has_failed(*id),
                nonce: open.map(|(_, _, it)| it.nonce),
            })
        });
        Ok(unpaid.collect())
    }

    fn settle_nonce(
        &self,
        service_id: &ServiceId,
        nonce: u64,
        used_at: Timestamp,
        nonce_use: &NonceUse,
    ) -> BatchResult<bool> {
        self.check("settle_nonce")?;
        let mut state = self.state();
        state.undecided.remove(&nonce);
        let position =
            state.nonces.iter().position(|(of, _, it)| of == service_id && it.nonce == nonce);
        let mut assigned = match position {
            Some(position) => state.nonces.remove(position),
            None => (service_id.clone(), None, unassigned_nonce(nonce, used_at)),
        };
        match nonce_use {
            NonceUse::Withdrawal { id, transaction } => {
                if assigned.1 != Some(*id) {
                    assigned.2.transactions.clear();
                }
                assigned.1 = Some(*id);
                assigned.2.generation = state.withdrawals[id].1.generation;
                let adopted = new_transaction(transaction.clone(), &*self.clock);
                assigned.2.transactions.push(SignedTransaction { adopted: true, ..adopted });
            }
            NonceUse::Elsewhere { hash, note } => {
                assigned.2.outcome = Some(NonceOutcome::UsedElsewhere);
                (assigned.2.foreign_hash, assigned.2.note) = (*hash, Some(note.clone()));
            }
            NonceUse::Undecided { hash, note } => {
                state.undecided.insert(nonce, note.clone());
                (assigned.2.foreign_hash, assigned.2.note) = (*hash, Some(note.clone()));
            }
        }
        state.nonces.push(assigned);
        Ok(true)
    }
}

fn unassigned_nonce(nonce: u64, assigned_at: Timestamp) -> AssignedNonce {
    AssignedNonce {
        nonce,
        generation: 0,
        assigned_at,
        note: None,
        foreign_hash: None,
        outcome: None,
        final_transaction: None,
        transactions: Vec::new(),
    }
}

fn new_transaction(signed: NewSignedTransaction, clock: &dyn Clock) -> SignedTransaction {
    let signed_at = clock.now();
    SignedTransaction { signed, signed_at, sent_at: None, last_error: None, adopted: false }
}

fn new_nonce(generation: u32, signed: &SignedTransaction) -> AssignedNonce {
    AssignedNonce {
        nonce: signed.signed.nonce,
        generation,
        assigned_at: signed.signed_at,
        note: None,
        foreign_hash: None,
        outcome: None,
        final_transaction: None,
        transactions: vec![signed.clone()],
    }
}

fn error(reason: &str) -> BatchError {
    BatchError::InternalError(reason.to_owned())
}

fn has_terms(payment: &Payment, terms: &Terms) -> bool {
    match (&payment.call, terms) {
        (Some(call), Terms::Call { to, value, data }) => {
            (&call.to, &call.value, &call.data) == (to, value, data)
        }
        (Some(_), Terms::Withdrawal { .. }) => false,
        (None, Terms::Withdrawal { pool, beneficiary, amount }) => {
            payment.pool.eq_ignore_ascii_case(pool)
                && payment.beneficiary.eq_ignore_ascii_case(beneficiary)
                && payment.amount == *amount
        }
        (None, Terms::Call { .. }) => false,
    }
}
