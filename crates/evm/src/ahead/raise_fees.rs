use grid_batch_withdrawals::{
    AssignedNonce, FollowingPayments, NewSignedTransaction, Payment, SignedTransaction,
};

use super::{
    look::LookAhead,
    sign::{SIGNING_LIMIT, highest_cost_of},
};
use crate::{
    account::AccountError,
    node::AccountState,
    price::{Bid, GasQuote, covers_price, raise_bid},
    send::{gas_limit, highest_cost, highest_fees, sign_replacement},
};

impl LookAhead<'_> {
    /// Replaces all transactions that cannot be mined at this price, or whose fees are to be raised on request, in the
    /// order of their nonces, as far as the cap and the funds allow, and sends the replacements. Returns whether there
    /// were any.
    ///
    /// Stops at the first withdrawal that is held or cancelled. Its own attempt handles it, and the withdrawals after
    /// it cannot be mined before it.
    pub(super) async fn raise_fees(
        &self,
        following: &FollowingPayments,
        account: AccountState,
        quote: &GasQuote,
    ) -> Result<bool, AccountError> {
        let raises = self.raises(following, account, quote);
        let Some(signer) = self.account.context.signers.get(&self.account.address()) else {
            return Ok(false);
        };
        let mut funds = account.balance.saturating_sub(self.reserved(following, account.mined));
        let start = self.account.context.monotonic();
        let mut signed: Vec<NewSignedTransaction> = Vec::new();
        for Raise { nonce, best, bid } in raises {
            let Ok(gas_limit) = gas_limit(&best.signed) else { break };
            let cost = highest_cost(&best.signed, bid.max_fee);
            let more = cost.saturating_sub(highest_cost_of(nonce));
            let Some(left) = funds.checked_sub(more) else { break };
            funds = left;
            match sign_replacement(signer, &best.signed, gas_limit, &bid).await {
                Ok(replacement) => signed.push(replacement),
                // The withdrawal's own attempt reports the reason.
                Err(_) => break,
            }
            if self.account.context.monotonic().since(start) >= SIGNING_LIMIT {
                break;
            }
        }
        if signed.is_empty() {
            return Ok(false);
        }
        let store = &self.account.context.store;
        let is_stored = store.replace_following(following, signed.clone()).await?;
        self.send_if_stored(&signed, is_stored).await
    }

    fn raises<'a>(
        &'a self,
        following: &'a FollowingPayments,
        account: AccountState,
        quote: &GasQuote,
    ) -> Vec<Raise<'a>> {
        let behind = following.payments.iter();
        let behind = behind.take_while(|it| !it.is_held).map(|it| &it.payment);
        let payments = [self.payment].into_iter().chain(behind);
        payments
            .take_while(|payment| !payment.cancel_requested)
            .filter_map(|payment| self.raise(payment, account, quote))
            .collect()
    }

    fn raise<'a>(
        &self,
        payment: &'a Payment,
        account: AccountState,
        quote: &GasQuote,
    ) -> Option<Raise<'a>> {
        let nonce = payment.open_nonce()?;
        let best = nonce.best()?;
        let is_mined = nonce.nonce < account.mined;
        let is_enough = covers_price(best.signed.max_fee, quote) && !payment.must_speed_up(best);
        if is_mined || best.signed.is_filler || is_enough {
            return None;
        }
        let bid = raise_bid(highest_fees(nonce), quote, self.account.context.cap_for(payment)?)?;
        Some(Raise { nonce, best, bid })
    }
}

/// A transaction to replace, and the bid of its replacement.
struct Raise<'a> {
    nonce: &'a AssignedNonce,
    best: &'a SignedTransaction,
    bid: Bid,
}
