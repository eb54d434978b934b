use std::fmt::Display;

use alloy_primitives::{Address, B256};
use grid_batch_core::ledger::{Outcome, Submission, SubmissionAnswer};
use grid_batch_core::{BatchResult, ItemId, ServiceId};
use grid_batch_withdrawals::{
    AssignedNonce, BatchAttempt, NewSignedTransaction, Payment, SignedTransaction,
};
use log::info;

use super::{
    answer::{self, SendResult},
    transaction::SigningError,
};
use crate::{
    account::Account,
    action::Action,
    context::EvmContext,
    node::{BlockTag, NodeClient},
    scope::AccountScopeId,
    signer::AccountSigner,
    values::GasPrice,
};

/// One attempt to send the withdrawal of one batch to one node.
pub(super) struct SendAttempt<'a> {
    pub(super) context: &'a EvmContext,
    pub(super) node: NodeClient,
    /// This node first, then the others.
    pub(super) nodes: Vec<NodeClient>,
    pub(super) batch: BatchAttempt,
    pub(super) scope: &'a AccountScopeId,
    pub(super) admin: Address,
    pub(super) payment: Payment,
}

impl<'a> SendAttempt<'a> {
    /// Loads the withdrawal of a batch that is to be sent to the node at `url`.
    pub(super) async fn load(
        context: &'a EvmContext,
        url: &str,
        scope: &'a AccountScopeId,
        submission: &Submission<ServiceId>,
    ) -> SendResult<Self> {
        let batch = batch_attempt(submission)?;
        let payment = read_payment(context, &batch).await?;
        let nodes = context.nodes_for(&batch.service_id, &batch.batch_id);
        let mut nodes = nodes.map_err(answer::store_failed)?;
        nodes.retain(|node| node.url() != url);
        let node = context.node(url);
        nodes.insert(0, node.duplicate());
        Ok(Self { context, node, nodes, batch, scope, admin: scope.address(), payment })
    }

    /// Reads the withdrawal again, after the nonces that the chain has used were settled.
    pub(super) async fn reload(&mut self) -> SendResult<()> {
        self.payment = read_payment(self.context, &self.batch).await?;
        Ok(())
    }

    /// Checks that the account and the node are on the configured chain.
    pub(super) async fn check_chain(&self) -> SendResult<()> {
        let (scope, expected) = (self.scope, self.context.options.chain_id);
        if scope.chain_id() != expected {
            return Err(answer::refused(format_args!("{scope} is not on chain {expected}")));
        }
        match self.node.chain_id().await.map_err(answer::node_failed)? {
            actual if actual == expected => Ok(()),
            actual => Err(answer::refused(format_args!(
                "the node is on chain {actual}, expected chain {expected}"
            ))),
        }
    }

    pub(super) fn account(&self) -> Account<'_> {
        Account { context: self.context, nodes: &self.nodes, scope: self.scope }
    }

    pub(super) fn service_id(&self) -> &ServiceId {
        &self.batch.service_id
    }

    /// The signer of the gas admin.
    pub(super) fn signer(&self) -> SendResult<&'a AccountSigner> {
        let admin = self.admin;
        let no_signer = || {
            let otherwise = match self.payment.call {
                Some(_) => "cancel the transaction",
                None => {
                    "move the withdrawal with `grid-batch move-withdrawals --reason TEXT` if its pool has \
                     another gas admin now"
                }
            };
            answer::refused(format_args!(
                "no key is configured for the gas admin {admin}; add it to gas_admins.*.key, or {otherwise}"
            ))
        };
        self.context.signers.get(&admin).ok_or_else(no_signer)
    }

    pub(super) fn action(&self) -> SendResult<Action> {
        Action::for_payment(&self.payment).map_err(answer::rejected)
    }

    /// The cap of the gas price for this withdrawal or call.
    pub(super) fn cap(&self) -> SendResult<GasPrice> {
        let cap = self.context.cap_for(&self.payment);
        cap.ok_or_else(|| answer::rejected("the address of its pool cannot be read"))
    }

    /// How many transactions of the account are in blocks.
    pub(super) async fn transaction_count(&self) -> SendResult<u64> {
        let count = self.node.transaction_count(self.admin, BlockTag::Latest).await;
        count.map_err(answer::node_failed)
    }

    /// Parks the withdrawal until the gates are checked again.
    pub(super) fn parked(&self, reason: impl Display) -> SubmissionAnswer {
        answer::parked(reason, self.context.options.gate_interval)
    }

    /// Parks the withdrawals of the pool until its gate is checked again. Those of other pools may overtake them,
    /// unless this withdrawal may have been sent with a nonce before, because the order of nonces must then be kept.
    pub(super) fn pool_parked(&self, reason: impl Display) -> SubmissionAnswer {
        if self.payment.is_restored || self.payment.nonce.is_some() {
            return self.parked(reason);
        }
        let what = match self.payment.call {
            Some(_) => "other transactions of its account overtake it",
            None => "only this pool is parked",
        };
        let reason = format_args!("{reason}; {what}");
        SubmissionAnswer { outcome: Outcome::PoolParked, ..self.parked(reason) }
    }

    /// The answer for a cancelled withdrawal that cannot be paid by any signed transaction.
    pub(super) fn cancelled(&self) -> SubmissionAnswer {
        match &self.payment.nonce {
            Some(AssignedNonce { nonce, .. }) => answer::rejected(format_args!(
                "cancelled; its nonce {nonce} was used by another transaction"
            )),
            None => answer::rejected("cancelled before anything was signed"),
        }
    }

    /// The answer if nothing was signed. No nonce was used, and the withdrawal waits for the signer.
    pub(super) fn not_signed(&self, error: SigningError) -> SubmissionAnswer {
        match error {
            SigningError::Stored(error) => answer::refused(error),
            SigningError::Signer(_) => self.parked(error),
        }
    }

    /// The transaction that was stored. If the attempt is no longer current, nothing is stored, and nothing must be
    /// sent.
    pub(super) fn stored(
        &self,
        result: BatchResult<Option<SignedTransaction>>,
    ) -> SendResult<NewSignedTransaction> {
        let Some(SignedTransaction { signed, .. }) = result.map_err(answer::store_failed)? else {
            return Err(answer::ambiguous("this attempt is no longer current; nothing was signed"));
        };
        self.context.tips.record(&signed);
        info!(
            service:% = self.service_id(), withdrawal:% = self.payment.withdrawal_id,
            nonce = signed.nonce, hash:% = B256::from(signed.hash),
            max_fee:% = GasPrice::from_wei(signed.max_fee), filler = signed.is_filler;
            "transaction signed"
        );
        Ok(signed)
    }
}

async fn read_payment(context: &EvmContext, batch: &BatchAttempt) -> SendResult<Payment> {
    let payment = context.store.payment(&batch.service_id, &batch.batch_id).await;
    let payment = payment.map_err(answer::store_failed)?;
    payment.ok_or_else(|| answer::rejected("no withdrawal or transaction belongs to this batch"))
}

fn batch_attempt(submission: &Submission<ServiceId>) -> SendResult<BatchAttempt> {
    let batch_id: ItemId = submission.batch_header().parse().map_err(answer::rejected)?;
    let Some(attempt_id) = submission.attempt_id() else {
        return Err(answer::refused("the batch has no attempt_id; nothing is signed without one"));
    };
    let service_id = submission.scope_id().clone();
    Ok(BatchAttempt { service_id, batch_id, attempt_id })
}
