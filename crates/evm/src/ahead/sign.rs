use std::time::Duration;

use alloy_primitives::{Address, B256, U256};
use grid_batch_withdrawals::{
    AssignedNonce, FollowingPayment, FollowingPayments, NewSignedTransaction,
};
use log::{debug, info, warn};

use super::look::LookAhead;
use crate::{
    account::AccountError,
    action::Action,
    node::{AccountState, NodeError},
    price::{Bid, GasQuote, price_gate},
    send::{TransactionDraft, highest_cost, payment_gas_limit, sign},
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
    action: Action,
    /// The gas limit that its request demands.
    gas_limit: Option<u64>,
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
            |cap: Option<GasPrice>| cap.is_some_and(|cap| price_gate(quote, cap).is_ok());
        if following.due_pools.iter().any(|pool| has_price(context.highest_cap_at(pool))) {
            return Ok(());
        }
        let has_unsettled = following.has_unsettled;
        if context.not_signing_ahead.changes(service_id, has_unsettled) && has_unsettled {
            warn!(
                service:% = self.account.scope;
                "nothing is signed ahead: a transaction of one that has ended, or of none, is \
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
        if let Some(stopped_at) = stopped_at.filter(|it| has_price(context.cap_for(&it.payment))) {
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
        for ((Candidate { action, bid, .. }, gas_limit), nonce) in
            candidates.into_iter().zip(gas_limits).zip(following.next_nonce..)
        {
            let elapsed = self.account.context.monotonic().since(start);
            signed.ended_by_time = elapsed >= SIGNING_LIMIT;
            if signed.ended_by_time {
                break;
            }
            let cost = bid.cost(gas_limit).saturating_add(action.value);
            let Some(left) = funds.checked_sub(cost) else { break };
            funds = left;
            let draft = TransactionDraft { chain_id, nonce, gas_limit, action };
            match sign(signer, &draft, &bid).await {
                Ok(transaction) => signed.transactions.push(transaction),
                // The withdrawal's own attempt reports the reason.
                Err(_) => break,
            }
        }
        Ok(signed)
    }

    fn candidate(&self, following: &FollowingPayment, quote: &GasQuote) -> Option<Candidate> {
        let (context, payment) = (self.account.context, &following.payment);
        let action = Action::for_payment(payment).ok()?;
        let bid = price_gate(quote, context.cap_for(payment)?).ok()?;
        context.check_request(self.account.service_id(), payment).ok()?;
        let gas_limit = payment.own_gas_limit();
        Some(Candidate { action, gas_limit, bid })
    }

    /// The gas limits of the withdrawals and calls before the first one that would fail.
    async fn simulate(&self, candidates: &[Candidate]) -> Result<Vec<u64>, NodeError> {
        let called = candidates.iter().filter_map(|it| it.action.called_contract());
        let mut contracts: Vec<Address> = called.collect();
        contracts.sort_unstable();
        contracts.dedup();
        let missing = self.missing_contracts(&contracts).await?;
        let has_contract = |it: &&Candidate| {
            it.action.called_contract().is_none_or(|contract| !missing.contains(&contract))
        };
        let candidates: Vec<&Candidate> = candidates.iter().take_while(has_contract).collect();
        if candidates.is_empty() {
            return Ok(Vec::new());
        }
        let actions: Vec<&Action> = candidates.iter().map(|it| &it.action).collect();
        let estimates = self.node.estimate_all(self.account.address(), &actions).await?;
        let block_limit = self.account.context.block_gas_limit(self.node).await;
        let limit = |(estimate, candidate): (Result<u64, NodeError>, &Candidate)| {
            let estimate = estimate.ok()?;
            match candidate.gas_limit {
                None => payment_gas_limit(estimate, block_limit),
                Some(own) => {
                    let fits = own >= estimate && block_limit.is_none_or(|limit| own <= limit);
                    fits.then_some(own)
                }
            }
        };
        Ok(estimates.into_iter().zip(candidates).map_while(limit).collect())
    }

    async fn missing_contracts(&self, contracts: &[Address]) -> Result<Vec<Address>, NodeError> {
        if contracts.is_empty() {
            return Ok(Vec::new());
        }
        let have_code = self.node.have_code(contracts).await?;
        let missing = contracts.iter().zip(have_code).filter(|(_, has_code)| !has_code);
        Ok(missing.map(|(contract, _)| *contract).collect())
    }

    /// The maximum cost of the transactions that are not mined.
    pub(super) fn reserved(&self, following: &FollowingPayments, mined: u64) -> U256 {
        let behind = following.in_flight().map(|(_, assigned)| assigned);
        let open = behind.chain([self.head]).filter(|assigned| assigned.nonce >= mined);
        open.map(highest_cost_of).fold(U256::ZERO, U256::saturating_add)
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

/// The maximum cost of a nonce: that of its most expensive transaction.
pub(super) fn highest_cost_of(assigned: &AssignedNonce) -> U256 {
    let signed = assigned.transactions.iter().map(|it| &it.signed);
    let costs = signed.map(|signed| highest_cost(signed, signed.max_fee));
    costs.max().unwrap_or_default()
}
