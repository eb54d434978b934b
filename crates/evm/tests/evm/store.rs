//! A signing store in memory, with the rules of the real one.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard},
};

use grid_batch_core::{
    BatchError, BatchResult, Clock, HeaderId, NewSigned, OpenNonce, Payment, ServiceId, Sign,
    SignedTransaction, SigningStore, Spent, Ticket, Turn, WithdrawalId,
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
    nonces: Vec<(ServiceId, Option<WithdrawalId>, OpenNonce)>,
    failed: HashSet<HeaderId>,
    tickets: HashMap<HeaderId, Ticket>,
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
    pub fn hand_over(&self, id: WithdrawalId) -> (HeaderId, Ticket) {
        let mut kept = self.kept();
        let batch_id = id.batch_id(kept.withdrawals[&id].1.generation);
        let attempt = kept.tickets.get(&batch_id).map_or(1, |ticket| ticket.attempt + 1);
        let ticket = Ticket { attempt, epoch: 1 };
        kept.tickets.insert(batch_id, ticket);
        (batch_id, ticket)
    }

    pub fn change(&self, id: WithdrawalId, change: impl FnOnce(&mut Payment)) {
        change(&mut self.kept().withdrawals.get_mut(&id).unwrap().1);
    }

    pub fn generation(&self, id: WithdrawalId) -> u32 {
        self.kept().withdrawals[&id].1.generation
    }

    /// The nonces that a withdrawal ever had, the oldest first.
    pub fn nonces(&self, id: WithdrawalId) -> Vec<OpenNonce> {
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
    pub fn fillers(&self) -> Vec<NewSigned> {
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
        Some(Payment { open: self.open(&found.1), ..found.1.clone() })
    }

    fn open(&self, payment: &Payment) -> Option<OpenNonce> {
        let mut nonces = self.nonces.iter().rev();
        let (_, _, last) = nonces.find(|(_, of, _)| *of == Some(payment.withdrawal_id))?;
        let came_to_nothing = !matches!(last.spent, None | Some(Spent::Withdrawn { .. }));
        let is_past = came_to_nothing && last.generation < payment.generation;
        (!is_past).then(|| last.clone())
    }

    fn nonce(&mut self, service_id: &ServiceId, nonce: u64) -> BatchResult<&mut OpenNonce> {
        let mut nonces = self.nonces.iter_mut();
        let found = nonces.find(|(of, _, it)| of == service_id && it.nonce == nonce);
        found.map(|(_, _, it)| it).ok_or_else(|| error("there is no such nonce"))
    }

    /// Whether a payment with this nonce was, or may still be, made.
    fn may_pay(&self, withdrawal: Option<WithdrawalId>, open: &OpenNonce) -> bool {
        let has_failed = |id: WithdrawalId| {
            self.failed.contains(&id.batch_id(self.withdrawals[&id].1.generation))
        };
        match open.spent {
            None => withdrawal.is_some_and(|id| !has_failed(id)),
            Some(Spent::Withdrawn { .. }) => true,
            Some(_) => false,
        }
    }

    fn next_nonce(&self, service_id: &ServiceId) -> Option<u64> {
        let of_service = self.nonces.iter().filter(|(of, _, _)| of == service_id);
        of_service.map(|(_, _, it)| it.nonce + 1).max()
    }

    /// The withdrawal whose turn it is.
    fn whose_turn(&self, turn: &Turn) -> Option<Payment> {
        let is_present = self.tickets.get(&turn.batch_id) == Some(&turn.ticket);
        is_present.then(|| self.payment(&turn.service_id, &turn.batch_id))?
    }
}

impl SigningStore for MemoryStore {
    fn payment(&self, service_id: &ServiceId, batch_id: &HeaderId) -> BatchResult<Option<Payment>> {
        self.check("payment")?;
        Ok(self.kept().payment(service_id, batch_id))
    }

    fn sign_first(
        &self,
        turn: &Turn,
        at_least: u64,
        sign: &mut Sign<'_>,
    ) -> BatchResult<Option<SignedTransaction>> {
        self.check("sign_first")?;
        let mut kept = self.kept();
        let Some(payment) = kept.whose_turn(turn) else { return Ok(None) };
        let forbids = |spent: &Option<Spent>| matches!(spent, None | Some(Spent::Withdrawn { .. }));
        let id = payment.withdrawal_id;
        if kept.nonces.iter().any(|(_, of, it)| *of == Some(id) && forbids(&it.spent)) {
            return Ok(None);
        }
        let nonce = kept.next_nonce(&turn.service_id).unwrap_or_default().max(at_least);
        let signed = just_signed(sign(nonce)?, &*self.clock);
        let open = just_taken(payment.generation, &signed);
        kept.nonces.push((turn.service_id.clone(), Some(id), open));
        Ok(Some(signed))
    }

    fn sign_again(&self, turn: &Turn, signed: NewSigned) -> BatchResult<Option<SignedTransaction>> {
        self.check("sign_again")?;
        let mut kept = self.kept();
        let open = kept.whose_turn(turn).and_then(|payment| payment.open);
        if !open.is_some_and(|open| open.nonce == signed.nonce && open.spent.is_none()) {
            return Ok(None);
        }
        let signed = just_signed(signed, &*self.clock);
        kept.nonce(&turn.service_id, signed.signed.nonce)?.transactions.push(signed.clone());
        Ok(Some(signed))
    }

    fn sign_filler(
        &self,
        turn: &Turn,
        nonce: u64,
        sign: &mut Sign<'_>,
    ) -> BatchResult<Option<SignedTransaction>> {
        self.check("sign_filler")?;
        let mut kept = self.kept();
        let open = kept.whose_turn(turn).and_then(|payment| payment.open);
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

    fn signed_from(&self, service_id: &ServiceId, nonce: u64) -> BatchResult<Vec<NewSigned>> {
        self.check("signed_from")?;
        let kept = self.kept();
        let offered = |(of, withdrawal, open): &(ServiceId, _, OpenNonce)| {
            let may_pay = kept.may_pay(*withdrawal, open);
            let signed = open.transactions.iter().map(|it| &it.signed);
            let best = signed.max_by_key(|it| (it.cancels, it.max_fee))?;
            let is_asked_for = of == service_id && open.nonce >= nonce;
            (is_asked_for && (best.cancels || may_pay)).then(|| best.clone())
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

    fn note_use(&self, service_id: &ServiceId, nonce: u64, hash: &[u8; 32]) -> BatchResult<()> {
        self.check("note_use")?;
        self.kept().nonce(service_id, nonce)?.used_by = Some(*hash);
        Ok(())
    }

    fn spend(&self, service_id: &ServiceId, nonce: u64, spent: &Spent) -> BatchResult<()> {
        self.check("spend")?;
        let mut kept = self.kept();
        let open = kept.nonce(service_id, nonce)?;
        match &open.spent {
            Some(other) if other != spent => Err(error("it is spent otherwise")),
            _ => {
                open.spent = Some(spent.clone());
                Ok(())
            }
        }
    }
}

fn just_signed(signed: NewSigned, clock: &dyn Clock) -> SignedTransaction {
    SignedTransaction { signed, signed_at: clock.now(), sent_at: None, last_error: None }
}

fn just_taken(generation: u32, signed: &SignedTransaction) -> OpenNonce {
    OpenNonce {
        nonce: signed.signed.nonce,
        generation,
        taken_at: signed.signed_at,
        note: None,
        used_by: None,
        spent: None,
        transactions: vec![signed.clone()],
    }
}

fn error(reason: &str) -> BatchError {
    BatchError::InternalError(reason.to_owned())
}
