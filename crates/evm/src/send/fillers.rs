use grid_batch_withdrawals::NewSignedTransaction;
use log::{debug, warn};

use super::{
    answer::{self, Step},
    attempt::SendAttempt,
    transaction::sign_filler,
};
use crate::price::{Bid, covers_price, price_gate, raise_bid};

/// How many transactions with lower nonces an attempt sends. The next attempts send the rest.
const MAX_AT_ONCE: u64 = 64;

impl SendAttempt<'_> {
    /// Sends the transactions with lower nonces that are not in a block of the node, which has
    /// `count` transactions: the chain may have dropped a block, or the node a pending transaction.
    /// A nonce without a transaction that may be sent is filled.
    pub(super) async fn send_lower_nonces(&self, count: u64, nonce: u64) -> Step<()> {
        if count >= nonce {
            return Ok(());
        }
        let stored = self.context.store.transactions_from(self.service_id(), count).await;
        let stored = stored.map_err(answer::store_failed)?;
        for nonce in count..nonce.min(count.saturating_add(MAX_AT_ONCE)) {
            let stored = stored.iter().find(|signed| signed.nonce == nonce);
            let filler = self.fill_nonce(nonce, stored).await?;
            let Some(signed) = filler.as_ref().or(stored) else { continue };
            let outcome = self.broadcast(signed).await.outcome;
            debug!(service:% = self.service_id(), nonce, outcome:%; "sent a transaction with a lower nonce");
        }
        let left = (nonce - count).saturating_sub(MAX_AT_ONCE);
        match left > self.context.longest_gap {
            true => Err(self.parked(format_args!("{left} more nonces below {nonce} to be filled"))),
            false => Ok(()),
        }
    }

    /// Signs and stores a new filler, if the nonce has no transaction that may be sent, or only a
    /// filler whose fee is too low. `None`: not needed, or not possible now.
    async fn fill_nonce(
        &self,
        nonce: u64,
        stored: Option<&NewSignedTransaction>,
    ) -> Step<Option<NewSignedTransaction>> {
        if stored.is_some_and(|signed| !signed.is_filler) {
            return Ok(None);
        }
        let Ok(signer) = self.signer() else { return Ok(None) };
        let Some(bid) = self.filler_bid(stored).await? else { return Ok(None) };
        let gas_limit = self.filler_gas_limit().await;
        let chain_id = self.context.chain_id;
        let filler = sign_filler(signer, chain_id, nonce, gas_limit, &bid).await;
        let filler = filler.map_err(|error| self.not_signed(error))?;
        let filler = self.context.store.fill_nonce(&self.batch, filler).await;
        let filler = filler.map_err(answer::store_failed)?.map(|filler| filler.signed);
        if let Some(filler) = &filler {
            self.context.tips.record(filler);
            warn!(
                service:% = self.service_id(), nonce;
                "no payment may use this nonce any more; it is filled with an empty transfer"
            );
        }
        Ok(filler)
    }

    async fn filler_bid(&self, stored: Option<&NewSignedTransaction>) -> Step<Option<Bid>> {
        let cap = self.context.cap_of(self.pool_call()?.pool);
        let Ok(quote) = self.quote().await else { return Ok(None) };
        Ok(match stored {
            None => price_gate(&quote, cap).ok(),
            Some(signed) if covers_price(signed.max_fee, &quote) => None,
            Some(signed) => raise_bid((signed.max_fee, signed.tip), &quote, cap),
        })
    }
}
