use grid_batch_withdrawals::{AssignedNonce, NewSignedTransaction, Payment, SignedTransaction};

use super::{
    answer::{self, SendResult},
    attempt::SendAttempt,
    transaction::{SigningError, gas_limit, highest_cost, sign_replacement},
};
use crate::{
    node::Refusal,
    price::{Bid, Fees, GasQuote, Urgency, covers_price, price_gate, raise_bid},
    values::GasPrice,
};

/// Chooses the transaction to send with a nonce that has transactions already.
impl SendAttempt<'_> {
    /// The same bytes, unless the withdrawal is to be cancelled or must pay more. `is_pending`: the node has one of its
    /// transactions.
    pub(super) async fn transaction_to_send(
        &self,
        assigned: &AssignedNonce,
        is_pending: bool,
    ) -> SendResult<NewSignedTransaction> {
        let Some(best) = assigned.best() else {
            let nonce = assigned.nonce;
            let reason = format_args!("no transaction is stored for nonce {nonce}");
            return Err(answer::ambiguous(reason));
        };
        if self.payment.cancel_requested && !best.signed.is_filler {
            let bid = self.cancelling_bid(&self.payment).await?;
            let filler = self.sign_filler(assigned.nonce, &bid).await?;
            return self.store_replacement(filler).await;
        }
        let cap = self.cap()?;
        if let Some(changed) = self.changed_after_refusal(best, cap).await? {
            return self.store_replacement(changed).await;
        }
        // Without a price, the stored transaction is sent.
        let is_urgent = self.is_pending_too_long(best) || self.payment.must_speed_up(best);
        let urgency = if is_urgent { Urgency::Late } else { Urgency::Usual };
        let Ok(quote) = self.quote_for(urgency).await else { return Ok(best.signed.clone()) };
        if let Some(replacement) = self.replacement(assigned, best, &quote, cap).await? {
            return self.store_replacement(replacement).await;
        }
        match price_gate(&quote, cap) {
            // The transaction could be mined at a price above the cap.
            Err(_) if best.signed.max_fee > cap.wei() && is_pending => Err(answer::accepted()),
            Err(closed) if best.signed.max_fee > cap.wei() => Err(self.parked(format_args!(
                "its transaction was signed before the cap was lowered: {}, and the node does not \
                 have it; it is sent again when the price is below the cap: {closed}",
                above_cap(best.signed.max_fee, cap)
            ))),
            _ => Ok(best.signed.clone()),
        }
    }

    /// The bid of a filler that replaces a payment. If the cap forbids outbidding the payment, the filler bids the cap,
    /// which a node that has dropped the payment accepts.
    pub(super) async fn cancelling_bid(&self, payment: &Payment) -> SendResult<Bid> {
        let cap = self.context.cap_for(payment).map_or_else(|| self.cap(), Ok)?;
        let quote = self.quote().await?;
        let fees = payment.open_nonce().map(highest_fees).unwrap_or_default();
        let raised = raise_bid(fees, &quote, cap);
        Ok(raised.unwrap_or_else(|| Bid { max_fee: cap.wei(), ..Bid::new(&quote, cap) }))
    }

    /// The same transaction with higher fees, if they are needed and possible: the signer signs, the cap allows them,
    /// and the account can pay them.
    async fn replacement(
        &self,
        assigned: &AssignedNonce,
        best: &SignedTransaction,
        quote: &GasQuote,
        cap: GasPrice,
    ) -> SendResult<Option<NewSignedTransaction>> {
        let needs_higher_fees = self.payment.must_speed_up(best)
            || is_too_low(best, quote)
            || (self.is_pending_too_long(best) && bids_less(&best.signed, &Bid::new(quote, cap)));
        if !needs_higher_fees {
            return Ok(None);
        }
        let bid = raise_bid(highest_fees(assigned), quote, cap);
        let Some(bid) = bid else { return Ok(None) };
        let Ok(signer) = self.signer() else { return self.without_key(best, quote) };
        let gas_limit = gas_limit(&best.signed).map_err(answer::refused)?;
        let needed = highest_cost(&best.signed, bid.max_fee);
        if self.pass_funds_gate(gas_limit, needed).await.is_err() {
            return Ok(None);
        }
        match sign_replacement(signer, &best.signed, gas_limit, &bid).await {
            Ok(replacement) => Ok(Some(replacement)),
            // The signed transaction can be sent without the signer.
            Err(SigningError::Signer(_)) => Ok(None),
            Err(error) => Err(self.not_signed(error)),
        }
    }

    /// Without a key, the same bytes are sent, unless they cannot be mined at this price.
    fn without_key(
        &self,
        best: &SignedTransaction,
        quote: &GasQuote,
    ) -> SendResult<Option<NewSignedTransaction>> {
        if covers_price(best.signed.max_fee, quote) {
            return Ok(None);
        }
        let (nonce, admin) = (best.signed.nonce, self.admin);
        Err(self.parked(format_args!(
            "the transaction with nonce {nonce} offers {}, the gas price is {}, and no key is configured \
             for the gas admin {admin}; add it to gas_admins.*.key, or wait for a lower price",
            GasPrice::from_wei(best.signed.max_fee),
            GasPrice::from_wei(quote.price)
        )))
    }

    fn is_pending_too_long(&self, best: &SignedTransaction) -> bool {
        best.sent_at.is_some() && self.context.is_pending_too_long(best.signed.hash)
    }

    async fn store_replacement(
        &self,
        signed: NewSignedTransaction,
    ) -> SendResult<NewSignedTransaction> {
        self.stored(self.context.store.replace_transaction(&self.batch, signed).await)
    }
}

/// Describes the price of a transaction that was signed before the cap was lowered.
pub(crate) fn above_cap(max_fee: u128, cap: GasPrice) -> String {
    format!("it pays up to {}, above the cap of {cap}", GasPrice::from_wei(max_fee))
}

/// The highest max fee and the highest tip of the transactions with this nonce. A replacement must outbid both.
pub(crate) fn highest_fees(assigned: &AssignedNonce) -> Fees {
    let signed = assigned.transactions.iter().map(|transaction| &transaction.signed);
    signed.fold(Fees::default(), |highest, it| Fees {
        max_fee: highest.max_fee.max(it.max_fee),
        tip: highest.tip.max(it.tip),
    })
}

/// Whether the current bid is higher. While the price stays the same, fees are not raised.
fn bids_less(signed: &NewSignedTransaction, current: &Bid) -> bool {
    signed.max_fee < current.max_fee || signed.tip < current.tip
}

fn is_too_low(best: &SignedTransaction, quote: &GasQuote) -> bool {
    let refusal = best.last_error.as_deref().map(Refusal::from_message);
    refusal == Some(Refusal::FeeTooLow) || !covers_price(best.signed.max_fee, quote)
}
