use std::time::Duration;

use alloy_primitives::{Address, B256, Bytes, U256};
use grid_batch_withdrawals::{
    AssignedNonce, FollowingPayment, FollowingPayments, NewSignedTransaction, Payment,
    WithdrawalRules,
};
use log::{debug, info, warn};

use super::look::LookAhead;
use crate::{
    account::AccountError,
    node::{AccountState, NodeError},
    pool::PoolCall,
    price::{Bid, GasQuote, price_gate},
    send::{TransactionDraft, gas_limit, payment_gas_limit, sign},
    signer::AccountSigner,
    values::GasPrice,
};

/// How long a look may spend on signing. A remote signer may be slow; the next look signs the rest.
pub(super) const SIGNING_LIMIT: Duration = Duration::from_secs(2);

/// The transactions that a look has signed.
#[derive(Default)]
struct Signed {
    transactions: Vec<NewSignedTransaction>,
    /// Whether signing ended because the time was over.
    ended_by_time: bool,
}

/// A withdrawal that may be signed, as far as the gas price and its terms are concerned.
struct Candidate {
    call: PoolCall,
    bid: Bid,
}

impl LookAhead<'_> {
    /// Signs and sends the next withdrawals, up to the limit of transactions in flight. It stops before the first one
    /// that does not pass the gates or the simulation, whose own attempt reports the reason.
    pub(super) async fn sign_more(
        &self,
        following: &FollowingPayments,
        account: AccountState,
        quote: &GasQuote,
    ) -> Result<(), AccountError> {
        let (context, service_id) = (self.account.context, self.account.service_id());
        let pending = following.next_nonce.saturating_sub(account.mined);
        let free = context
            .options
            .in_flight
            .saturating_sub(usize::try_from(pending).unwrap_or(usize::MAX));
        let unsigned: Vec<&FollowingPayment> = following.unsigned().take(free).collect();
        let (Some(first), Some(signer)) =
            (unsigned.first(), context.signers.get(&self.account.address()))
        else {
            return Ok(());
        };
        let has_price =
            |pool: &str| context.cap_at(pool).is_some_and(|cap| price_gate(quote, cap).is_ok());
        if following.due_pools.iter().any(|pool| has_price(pool)) {
            return Ok(());
        }
        let has_unsettled = following.has_unsettled;
        if context.not_signing_ahead.changes(service_id, has_unsettled) && has_unsettled {
            warn!(
                service:% = self.account.scope;
                "nothing is signed ahead: a transaction of a withdrawal that has ended, or of none, is \
                 not final, or an operator has to decide about its nonce"
            );
        }
        let (now, pause) = (context.monotonic(), context.options.gate_interval);
        if context.ahead_pauses.contains(service_id, first.batch_id, now, pause) {
            return Ok(());
        }
        if has_unsettled || !self.has_all(following, account).await {
            return Ok(());
        }
        // The pause begins before signing, so that it applies if the look ends here because the signer does not answer.
        context.ahead_pauses.begin(service_id, first.batch_id, now);
        let signed = self.sign(following, &unsigned, signer, quote, account).await;
        context.ahead_pauses.end(service_id);
        let Signed { transactions: signed, ended_by_time } = signed?;
        // Each look reads the price anyway, so it needs no pause. The other causes are more expensive to check.
        let stopped_at = unsigned.get(signed.len()).filter(|_| !ended_by_time);
        if let Some(stopped_at) = stopped_at.filter(|it| has_price(&it.payment.pool)) {
            context.ahead_pauses.begin(service_id, stopped_at.batch_id, now);
        }
        if !signed.is_empty() {
            let is_stored = context.store.sign_following(following, signed.clone()).await?;
            self.send_if_stored(&signed, is_stored).await?;
        }
        Ok(())
    }

    async fn sign(
        &self,
        following: &FollowingPayments,
        unsigned: &[&FollowingPayment],
        signer: &AccountSigner,
        quote: &GasQuote,
        account: AccountState,
    ) -> Result<Signed, AccountError> {
        let candidates: Vec<Candidate> =
            unsigned.iter().map_while(|it| self.candidate(it, quote)).collect();
        let gas_limits = self.simulate(&candidates).await?;
        let mut funds = account.balance.saturating_sub(self.reserved(following, account.mined));
        let chain_id = self.account.context.options.chain_id;
        let start = self.account.context.monotonic();
        let mut signed = Signed::default();
        for ((Candidate { call, bid }, gas_limit), nonce) in
            candidates.into_iter().zip(gas_limits).zip(following.next_nonce..)
        {
            let elapsed = self.account.context.monotonic().since(start);
            signed.ended_by_time = elapsed >= SIGNING_LIMIT;
            if signed.ended_by_time {
                break;
            }
            let Some(left) = funds.checked_sub(bid.cost(gas_limit)) else { break };
            funds = left;
            let PoolCall { pool: to, data } = call;
            let draft = TransactionDraft { chain_id, nonce, gas_limit, to, data };
            match sign(signer, &draft, &bid).await {
                Ok(transaction) => signed.transactions.push(transaction),
                // The withdrawal's own attempt reports the reason.
                Err(_) => break,
            }
        }
        Ok(signed)
    }

    fn candidate(&self, following: &FollowingPayment, quote: &GasQuote) -> Option<Candidate> {
        let call = PoolCall::for_payment(&following.payment).ok()?;
        let cap = self.account.context.cap_of(call.pool);
        let bid = price_gate(quote, cap).ok()?;
        let Payment { pool, beneficiary, .. } = &following.payment;
        self.account.context.options.rules.may_be_paid(pool, beneficiary).ok()?;
        Some(Candidate { call, bid })
    }

    /// The gas limits of the withdrawals before the first one that the pool refuses.
    async fn simulate(&self, candidates: &[Candidate]) -> Result<Vec<u64>, NodeError> {
        let mut pools: Vec<Address> = candidates.iter().map(|it| it.call.pool).collect();
        pools.sort_unstable();
        pools.dedup();
        if pools.is_empty() || self.node.have_code(&pools).await?.contains(&false) {
            return Ok(Vec::new());
        }
        let calls: Vec<(Address, Bytes)> =
            candidates.iter().map(|it| (it.call.pool, it.call.data.clone())).collect();
        let estimates = self.node.estimate_all(self.account.address(), &calls).await?;
        let block_limit = self.account.context.block_gas_limit(self.node).await;
        let limit =
            |estimate: Result<u64, NodeError>| payment_gas_limit(estimate.ok()?, block_limit);
        Ok(estimates.into_iter().map_while(limit).collect())
    }

    /// The maximum cost of the transactions that are not mined.
    pub(super) fn reserved(&self, following: &FollowingPayments, mined: u64) -> U256 {
        let behind = following.in_flight().map(|(_, assigned)| assigned);
        let open = behind.chain([self.head]).filter(|assigned| assigned.nonce >= mined);
        open.map(highest_cost).fold(U256::ZERO, U256::saturating_add)
    }

    /// Sends the signed transactions if they were stored, and returns whether they were. If not, the queue has changed.
    pub(super) async fn send_if_stored(
        &self,
        signed: &[NewSignedTransaction],
        is_stored: bool,
    ) -> Result<bool, AccountError> {
        if !is_stored {
            debug!(service:% = self.account.scope; "the queue has changed; the new signatures are dropped");
            return Ok(false);
        }
        for signed in signed {
            self.account.context.tips.record(signed);
            info!(
                service:% = self.account.scope, nonce = signed.nonce, hash:% = B256::from(signed.hash),
                max_fee:% = GasPrice::from_wei(signed.max_fee);
                "transaction signed together with others of its gas admin"
            );
        }
        self.broadcast(&signed.iter().collect::<Vec<_>>()).await?;
        Ok(true)
    }
}

/// The maximum cost of the gas for a nonce: that of its most expensive transaction.
pub(super) fn highest_cost(assigned: &AssignedNonce) -> U256 {
    let cost = |signed: &NewSignedTransaction| {
        // A transaction that cannot be decoded cannot be sent either.
        U256::from(gas_limit(signed).unwrap_or_default()) * U256::from(signed.max_fee)
    };
    assigned.transactions.iter().map(|it| cost(&it.signed)).max().unwrap_or_default()
}
