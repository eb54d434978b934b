use alloy_primitives::B256;
use grid_batch_core::ledger::{Outcome, SubmissionAnswer};
use grid_batch_withdrawals::{NewSignedTransaction, SignedTransaction};
use log::{info, warn};

use super::{
    answer::{self, SendResult},
    attempt::SendAttempt,
    transaction::{gas_limit, is_legacy, sign_replacement},
};
use crate::{
    node::{NodeError, Refusal},
    nonce::NonceObservation,
    price::{Bid, covers_price, price_gate},
    values::GasPrice,
};

/// Handles the refusal of a signed transaction by a node.
impl SendAttempt<'_> {
    /// Handles a refusal that is repeated for the same bytes until something changes. Another node may still accept
    /// them.
    pub(super) async fn refused_for_good(
        &self,
        signed: &NewSignedTransaction,
        reason: &str,
        error: &NodeError,
    ) -> SubmissionAnswer {
        if Refusal::of(error) == Refusal::TypeNotSupported && !self.context.facts.is_legacy_only() {
            warn!(service:% = self.service_id(), error:%;
                "a node does not accept transactions with a base fee; from now on, transactions have \
                 one price");
            self.context.facts.set_legacy_only();
        }
        match self.send_to_others(signed).await {
            OtherNodes::Accept => answer::accepted(),
            OtherNodes::Unclear(other) => {
                answer::ambiguous(format_args!("{reason}; {error}; another node: {other}"))
            }
            OtherNodes::Refuse => match self.check_not_shown(signed).await {
                Ok(()) => answer::refused_batch(format_args!("{reason}; {error}")),
                Err(answer) => answer,
            },
        }
    }

    /// Handles an error that does not say whether the node has the transaction.
    pub(super) async fn unless_known(
        &self,
        signed: &NewSignedTransaction,
        outcome: Outcome,
        error: &NodeError,
    ) -> SubmissionAnswer {
        match self.node.has_transaction(signed.hash.into()).await {
            Ok(true) => answer::accepted(),
            Ok(false) => answer::node_answer(outcome, error),
            Err(_) => answer::ambiguous(error),
        }
    }

    /// Handles a refusal because of the fee. The answer states the present price if that explains the refusal.
    pub(super) async fn refused_fee(
        &self,
        signed: &NewSignedTransaction,
        error: &NodeError,
    ) -> SubmissionAnswer {
        let (Ok(cap), Ok(quote)) = (self.cap(), self.quote().await) else {
            return self.parked(error);
        };
        let max_fee = GasPrice::from_wei(signed.max_fee);
        match price_gate(&quote, cap) {
            Err(closed) => self.parked(closed),
            Ok(_) if !covers_price(signed.max_fee, &quote) => self.parked(format_args!(
                "the gas price is {}, above the {max_fee} that its transaction pays at most; it is sent \
                 again with a higher fee",
                GasPrice::from_wei(quote.price)
            )),
            Ok(_) => self.parked(error),
        }
    }

    /// Sends a transaction that one node has refused to the other nodes until one accepts it.
    async fn send_to_others(&self, signed: &NewSignedTransaction) -> OtherNodes {
        let mut unclear = None;
        for node in self.nodes.iter().skip(1) {
            let Err(error) = node.send_raw_transaction(&signed.bytes).await else {
                return self.accepted_elsewhere(signed);
            };
            match error {
                NodeError::NotSent(_) | NodeError::InvalidUrl(_) => {}
                // A node that hangs uses up all the time of an attempt.
                NodeError::NoResponse(_) => return OtherNodes::Unclear(error),
                error => match Refusal::of(&error) {
                    Refusal::Known => return self.accepted_elsewhere(signed),
                    refusal if refusal.lasting_reason().is_some() => {}
                    // The node may have the transaction, pending or mined.
                    _ => unclear = unclear.or(Some(error)),
                },
            }
        }
        unclear.map_or(OtherNodes::Refuse, OtherNodes::Unclear)
    }

    fn accepted_elsewhere(&self, signed: &NewSignedTransaction) -> OtherNodes {
        info!(service:% = self.service_id(), hash:% = B256::from(signed.hash);
            "one node refused a transaction, and another one accepted it");
        OtherNodes::Accept
    }

    /// Ends the attempt if a node shows a transaction of the withdrawal's nonce although all nodes refuse this one,
    /// because it is then not certain that no node has the withdrawal.
    async fn check_not_shown(&self, signed: &NewSignedTransaction) -> SendResult<()> {
        // The payment is read again, because the attempt may have read it before this transaction was stored.
        let payment = self.context.store.payment(self.service_id(), &self.batch.batch_id).await;
        let payment = payment.map_err(answer::ambiguous)?;
        let assigned = payment.and_then(|payment| payment.nonce);
        let Some(assigned) = assigned.filter(|it| it.nonce == signed.nonce) else { return Ok(()) };
        let best = self.account().observe(&assigned).await;
        match best.map_err(answer::ambiguous)?.observation {
            NonceObservation::NotFound => Ok(()),
            NonceObservation::Mined(_) | NonceObservation::Pending => Err(answer::accepted()),
            NonceObservation::UsedElsewhere => Err(answer::ambiguous(format_args!(
                "nonce {} is used, and no node shows any of its transactions",
                assigned.nonce
            ))),
        }
    }

    /// After the last transaction was refused: the transaction in a form that a node may accept, with another gas limit
    /// or with a single price. `None`: nothing can be changed.
    pub(super) async fn changed_after_refusal(
        &self,
        last: &SignedTransaction,
        cap: GasPrice,
    ) -> SendResult<Option<NewSignedTransaction>> {
        let Some(refusal) = last_refusal(last) else { return Ok(None) };
        let (Ok(signer), Ok(quote)) = (self.signer(), self.quote().await) else { return Ok(None) };
        let Ok(bid) = price_gate(&quote, cap) else { return Ok(None) };
        // No node has the last transaction, so it need not be outbid. If several have the highest fee, the last one is
        // sent.
        let Some(bid) = at_least(&last.signed, bid, cap) else { return Ok(None) };
        let signed_limit = gas_limit(&last.signed).map_err(answer::refused)?;
        let new_limit = match refusal {
            Refusal::GasLimitTooHigh | Refusal::GasLimitTooLow => {
                self.other_gas_limit(last).await.unwrap_or(signed_limit)
            }
            _ => signed_limit,
        };
        if new_limit == signed_limit && !changes_type(refusal, last, &bid)? {
            return Ok(None);
        }
        let changed = sign_replacement(signer, &last.signed, new_limit, &bid).await;
        changed.map(Some).map_err(|error| self.not_signed(error))
    }

    async fn other_gas_limit(&self, last: &SignedTransaction) -> Option<u64> {
        if last.signed.is_filler {
            return Some(self.filler_gas_limit().await);
        }
        if self.payment.own_gas_limit().is_some() {
            return None;
        }
        let action = self.action().ok()?;
        let estimate = self.node.estimate_gas(self.admin, &action).await.ok()?;
        self.gas_limit_after_refusal(estimate).await
    }
}

/// The answers of the other nodes to a transaction that one node has refused for good.
enum OtherNodes {
    /// One accepts it or has it.
    Accept,
    /// Each refuses it for good or did not receive it.
    Refuse,
    /// None accepts it, but one may have it.
    Unclear(NodeError),
}

/// Why the node refused the transaction when it was last sent, if the same bytes will be refused again.
pub(super) fn last_refusal(last: &SignedTransaction) -> Option<Refusal> {
    let refusal = last.last_error.as_deref().map(Refusal::from_message)?;
    refusal.lasting_reason().map(|_| refusal)
}

/// The bid, raised to at least the fee of the last transaction. `None`: the cap forbids it.
fn at_least(last: &NewSignedTransaction, bid: Bid, cap: GasPrice) -> Option<Bid> {
    let max_fee = bid.max_fee.max(last.max_fee);
    let tip = if bid.is_legacy { max_fee } else { bid.tip };
    (max_fee <= cap.wei()).then_some(Bid { max_fee, tip, ..bid })
}

fn changes_type(refusal: Refusal, last: &SignedTransaction, bid: &Bid) -> SendResult<bool> {
    let was_legacy = is_legacy(&last.signed).map_err(answer::refused)?;
    Ok(refusal == Refusal::TypeNotSupported && bid.is_legacy && !was_legacy)
}
