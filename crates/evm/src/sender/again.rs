use grid_batch_core::SubmissionAnswer;
use grid_batch_withdrawals::{
    AssignedNonce, NewSignedTransaction, NonceOutcome, SignedTransaction,
};

use crate::{
    GasPrice,
    bid::{Bid, raise, would_be_taken},
    gate::gate,
    lost::is_lost,
    price::Quote,
    refusal::Refusal,
    sender::{
        answer::{self, Step},
        task::Task,
    },
    sighting::Sighting,
    transaction::{cancel, gas_limit, resign},
};

impl Task<'_> {
    /// Goes on with the nonce that the withdrawal has. It gets no other, unless a person has it
    /// tried anew after this one was lost.
    pub(crate) async fn again(&self, open: &AssignedNonce) -> Step<SubmissionAnswer> {
        let sighting = Sighting::at(&self.node, self.admin, open).await;
        match sighting.map_err(answer::without_node)? {
            Sighting::Mined(_) => return Ok(answer::accepted()),
            Sighting::Elsewhere => return self.used_elsewhere(open).await,
            Sighting::Waiting | Sighting::Gone => {}
        }
        let next = self.next_transaction(open).await?;
        self.send_before(self.count().await?, open.nonce).await?;
        Ok(self.broadcast(&next).await)
    }

    async fn used_elsewhere(&self, open: &AssignedNonce) -> Step<SubmissionAnswer> {
        let is_tried_anew = open.generation < self.payment.generation;
        if !is_tried_anew || !self.is_lost(open).await? {
            let nonce = open.nonce;
            return Err(answer::unknown(format_args!("nonce {nonce} was used by somebody else")));
        }
        let records = &self.shared.records;
        let outcome =
            records.close_nonce(self.service_id(), open.nonce, NonceOutcome::UsedElsewhere).await;
        outcome.map_err(answer::without_store)?;
        self.first().await
    }

    async fn is_lost(&self, open: &AssignedNonce) -> Step<bool> {
        let shared = self.shared;
        let nodes = shared.nodes_of(&shared.sending, self.service_id(), &self.turn.batch_id);
        let nodes = nodes.map_err(answer::without_store)?;
        let is_lost = is_lost(&nodes, shared, self.admin, open).await;
        is_lost.map_err(answer::without_node)
    }

    /// What is to be sent: the same bytes, unless it is to be undone, or to pay more.
    async fn next_transaction(&self, open: &AssignedNonce) -> Step<NewSignedTransaction> {
        let Some(best) = best_of(open) else {
            let nonce = open.nonce;
            return Err(answer::unknown(format_args!("nothing is signed with nonce {nonce}")));
        };
        if self.payment.cancel_requested && !best.signed.is_filler {
            return self.cancelling(open, best).await;
        }
        let cap = self.cap(self.proposal()?.pool);
        // Where nobody knows the price, what is there is sent.
        let Ok(quote) = self.quote().await else { return Ok(best.signed.clone()) };
        if let Some(raised) = self.raised(open, best, &quote, cap).await? {
            return self.replace_transaction(raised).await;
        }
        // The cap was lowered since: what bids more would be mined at a price that is too high.
        match gate(&quote, cap) {
            Err(closed) if best.signed.max_fee > cap.wei() => Err(self.parked(closed)),
            _ => Ok(best.signed.clone()),
        }
    }

    /// The same nonce, for nothing. Where the cap forbids to outbid what it is to replace, it bids
    /// the cap: a node that has lost the other takes it.
    async fn cancelling(
        &self,
        open: &AssignedNonce,
        best: &SignedTransaction,
    ) -> Step<NewSignedTransaction> {
        let cap = self.cap(self.proposal()?.pool);
        let quote = self.quote().await?;
        let bid = raise(highest_fees(open), &quote, cap)
            .unwrap_or_else(|| Bid { max_fee: cap.wei(), ..Bid::new(&quote, cap) });
        let cancelling = cancel(self.key()?, &best.signed, &bid).map_err(answer::refused)?;
        self.replace_transaction(cancelling).await
    }

    /// The same for more, where that is wanted and possible: there is a key, the cap allows it, and
    /// the account can pay.
    async fn raised(
        &self,
        open: &AssignedNonce,
        best: &SignedTransaction,
        quote: &Quote,
        cap: GasPrice,
    ) -> Step<Option<NewSignedTransaction>> {
        let is_wanted = is_too_low(best, quote)
            || (self.waits_too_long(best) && pays_less(&best.signed, &Bid::new(quote, cap)));
        let bid = is_wanted.then(|| raise(highest_fees(open), quote, cap)).flatten();
        let (Some(bid), Ok(key)) = (bid, self.key()) else { return Ok(None) };
        let gas_limit = gas_limit(&best.signed).map_err(answer::refused)?;
        if self.pass_funds_gate(gas_limit, &bid).await.is_err() {
            return Ok(None);
        }
        resign(key, &best.signed, &bid).map(Some).map_err(answer::refused)
    }

    fn waits_too_long(&self, best: &SignedTransaction) -> bool {
        let now = self.shared.clock.now();
        best.sent_at.is_some_and(|sent_at| now.since(sent_at) > self.shared.resend_after)
    }

    async fn replace_transaction(
        &self,
        signed: NewSignedTransaction,
    ) -> Step<NewSignedTransaction> {
        self.stored(self.shared.records.replace_transaction(&self.turn, signed).await)
    }
}

/// What is to be mined: what cancels, where anything does, and of that the best paid.
fn best_of(open: &AssignedNonce) -> Option<&SignedTransaction> {
    open.transactions.iter().max_by_key(|it| (it.signed.is_filler, it.signed.max_fee))
}

/// The highest max fee and the highest tip: what is to replace any of them must outbid both.
fn highest_fees(open: &AssignedNonce) -> (u128, u128) {
    let signed = open.transactions.iter().map(|transaction| &transaction.signed);
    signed.fold((0, 0), |(fee, tip), it| (fee.max(it.max_fee), tip.max(it.tip)))
}

/// Whether today's bid is higher. A chain that stands still asks for no more than before.
fn pays_less(signed: &NewSignedTransaction, today: &Bid) -> bool {
    signed.max_fee < today.max_fee || signed.tip < today.tip
}

fn is_too_low(best: &SignedTransaction, quote: &Quote) -> bool {
    let was_refused = best.last_error.as_deref().map(Refusal::of) == Some(Refusal::FeeTooLow);
    was_refused || !would_be_taken(best.signed.max_fee, quote)
}
