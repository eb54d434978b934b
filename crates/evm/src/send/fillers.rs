use grid_batch_withdrawals::{AssignedNonce, FollowingPayment, NewSignedTransaction, Payment};
use log::{debug, warn};

use super::{
    answer::{self, SendResult},
    attempt::SendAttempt,
    replacement::above_cap,
    transaction::{TransactionDraft, sign},
};
use crate::{
    action::Action,
    price::{Bid, Fees, covers_price, price_gate, raise_bid},
};

/// How many transactions with lower nonces an attempt sends. The next attempts send the rest.
const MAX_AT_ONCE: u64 = 64;

impl SendAttempt<'_> {
    /// Sends the transactions with lower nonces that are not in a block of the node, which has `count` transactions,
    /// because the chain may have dropped a block, or the node a pending transaction. A nonce is filled if it has no
    /// transaction that may be sent, or belongs to a cancelled withdrawal.
    pub(super) async fn send_lower_nonces(&self, count: u64, nonce: u64) -> SendResult<()> {
        if count >= nonce {
            return Ok(());
        }
        let stored = self.context.store.transactions_from(self.service_id(), count).await;
        let stored = stored.map_err(answer::store_failed)?;
        let lower = self.check_open_payments(count, Some(nonce)).await?;
        let cancelled: Vec<&Payment> =
            lower.iter().map(|it| &it.payment).filter(|payment| payment.cancel_requested).collect();
        for nonce in count..nonce.min(count.saturating_add(MAX_AT_ONCE)) {
            let stored = stored.iter().find(|signed| signed.nonce == nonce);
            let needs_filler = |payment: &&&Payment| {
                payment.open_nonce().is_some_and(|it| it.nonce == nonce && !has_filler(it))
            };
            let filler = match cancelled.iter().find(needs_filler) {
                Some(payment) => Some(self.cancel_lower(payment, nonce).await?),
                None => self.fill_nonce(nonce, stored).await?,
            };
            let Some(signed) = filler.as_ref().or(stored) else { continue };
            let outcome = self.broadcast(signed).await.outcome;
            debug!(service:% = self.service_id(), nonce, outcome:%; "sent a transaction with a lower nonce");
        }
        let left = (nonce - count).saturating_sub(MAX_AT_ONCE);
        if left > self.context.options.longest_gap {
            Err(self.parked(format_args!("{left} more nonces below {nonce} to be filled")))
        } else {
            Ok(())
        }
    }

    /// Signs and stores a new filler if the nonce has no transaction that may be sent, or only a filler with too low a
    /// fee. `None`: a filler is not needed, or not possible now.
    async fn fill_nonce(
        &self,
        nonce: u64,
        stored: Option<&NewSignedTransaction>,
    ) -> SendResult<Option<NewSignedTransaction>> {
        if stored.is_some_and(|signed| !signed.is_filler) {
            return Ok(None);
        }
        if self.signer().is_err() {
            return Ok(None);
        }
        let Some(bid) = self.filler_bid(stored).await? else { return Ok(None) };
        let filler = self.store_filler(nonce, &bid).await?;
        if filler.is_some() {
            warn!(
                service:% = self.service_id(), nonce;
                "no payment may use this nonce any more; it is filled with an empty transfer"
            );
        }
        Ok(filler)
    }

    /// Signs and stores a filler for the nonce of a cancelled withdrawal. Without one, nothing is sent.
    async fn cancel_lower(
        &self,
        payment: &Payment,
        nonce: u64,
    ) -> SendResult<NewSignedTransaction> {
        let bid = self.cancelling_bid(payment).await?;
        let filler = self.store_filler(nonce, &bid).await?;
        let not_filled = || {
            self.parked(format_args!(
                "the lower nonce {nonce} of a cancelled transaction was not filled"
            ))
        };
        filler.ok_or_else(not_filled)
    }

    /// `None`: nothing was stored, because a payment may use the nonce.
    async fn store_filler(
        &self,
        nonce: u64,
        bid: &Bid,
    ) -> SendResult<Option<NewSignedTransaction>> {
        let filler = self.sign_filler(nonce, bid).await?;
        let filler = self.context.store.fill_nonce(&self.batch, filler).await;
        let filler = filler.map_err(answer::store_failed)?.map(|filler| filler.signed);
        if let Some(filler) = &filler {
            self.context.tips.record(filler);
        }
        Ok(filler)
    }

    /// Signs an empty transfer from the account to itself.
    pub(super) async fn sign_filler(
        &self,
        nonce: u64,
        bid: &Bid,
    ) -> SendResult<NewSignedTransaction> {
        let signer = self.signer()?;
        let draft = TransactionDraft {
            chain_id: self.context.options.chain_id,
            nonce,
            gas_limit: self.filler_gas_limit().await,
            action: Action::filler(self.admin),
        };
        sign(signer, &draft, bid).await.map_err(|error| self.not_signed(error))
    }

    /// Checks the open withdrawals with nonces from `count` up to this one. This withdrawal waits if one of them must
    /// not be sent, because it is held or its transaction bids more than a lowered cap.
    pub(super) async fn check_open_payments(
        &self,
        count: u64,
        below: Option<u64>,
    ) -> SendResult<Vec<FollowingPayment>> {
        let open = self.context.store.open_payments_from(self.service_id(), count).await;
        let mut open = open.map_err(answer::store_failed)?;
        open.retain(|it| {
            it.payment.open_nonce().is_some_and(|it| below.is_none_or(|end| it.nonce < end))
        });
        for lower in &open {
            self.check_lower(lower).await?;
        }
        Ok(open)
    }

    async fn check_lower(&self, lower: &FollowingPayment) -> SendResult<()> {
        let FollowingPayment { payment, is_held, .. } = lower;
        let Some(assigned) = payment.open_nonce() else { return Ok(()) };
        let (kind, id, nonce) = (payment.kind_name(), payment.withdrawal_id, assigned.nonce);
        if *is_held {
            return Err(self.parked(format_args!(
                "{kind} {id} has the lower nonce {nonce} and is held; release it"
            )));
        }
        let Some(best) = assigned.best().filter(|best| !best.signed.is_filler) else {
            return Ok(());
        };
        let cap = self.context.cap_for(payment);
        let Some(cap) = cap.filter(|cap| best.signed.max_fee > cap.wei()) else { return Ok(()) };
        if payment.cancel_requested {
            return Ok(());
        }
        // Without a price, the stored transaction is sent.
        let Ok(quote) = self.quote().await else { return Ok(()) };
        price_gate(&quote, cap).map(drop).map_err(|closed| {
            self.parked(format_args!(
                "the transaction of {kind} {id}, which has the lower nonce {nonce}, was signed before the cap \
                 was lowered: {}; it is sent when the price is below the cap: {closed}",
                above_cap(best.signed.max_fee, cap)
            ))
        })
    }

    async fn filler_bid(&self, stored: Option<&NewSignedTransaction>) -> SendResult<Option<Bid>> {
        let cap = self.cap()?;
        let Ok(quote) = self.quote().await else { return Ok(None) };
        Ok(match stored {
            None => price_gate(&quote, cap).ok(),
            Some(signed) if covers_price(signed.max_fee, &quote) => None,
            Some(signed) => raise_bid(Fees::of(signed), &quote, cap),
        })
    }
}

fn has_filler(assigned: &AssignedNonce) -> bool {
    assigned.best().is_some_and(|best| best.signed.is_filler)
}
