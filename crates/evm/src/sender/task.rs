use std::fmt::Display;

use alloy_primitives::Address;
use grid_batch_core::{HeaderId, ScopeId, ServiceId, Submission, SubmissionAnswer};
use grid_batch_withdrawals::{BatchAttempt, Payment};

use crate::{
    AccountScopeId, GasAdminKey,
    node::{BlockTag, Node},
    proposal::Proposal,
    sender::answer::{self, Step},
    shared::Shared,
};

/// One sending of one batch: what for, from which account, by which node.
pub(crate) struct Task<'a> {
    pub(crate) shared: &'a Shared,
    pub(crate) node: Node,
    pub(crate) turn: BatchAttempt,
    pub(crate) admin: Address,
    pub(crate) payment: Payment,
}

impl<'a> Task<'a> {
    /// The sending of this batch to the node at `url`.
    pub(crate) async fn of(
        shared: &'a Shared,
        url: &str,
        submission: &Submission<AccountScopeId>,
    ) -> Step<Self> {
        let scope = submission.scope_id();
        let turn = turn_of(submission)?;
        let payment = shared.records.payment(&turn.service_id, turn.batch_id).await;
        let payment = payment
            .map_err(answer::without_store)?
            .ok_or_else(|| answer::rejected("no withdrawal belongs to this batch"))?;
        let node = Node::new(shared.sending.clone(), url);
        Ok(Self { shared, node, turn, admin: scope.address(), payment })
    }

    /// Whether account and node are of the right chain.
    pub(crate) async fn check_chain(&self, scope: &AccountScopeId) -> Step<()> {
        let ours = self.shared.chain_id;
        if scope.chain_id() != ours {
            return Err(answer::refused(format_args!("{scope} is not of chain {ours}")));
        }
        match self.node.chain_id().await.map_err(answer::without_node)? {
            theirs if theirs == ours => Ok(()),
            theirs => Err(answer::refused(format_args!(
                "the node is of chain {theirs}, and not of chain {ours}"
            ))),
        }
    }

    pub(crate) fn service_id(&self) -> &ServiceId {
        &self.turn.service_id
    }

    /// The key of the account that pays the gas.
    pub(crate) fn key(&self) -> Step<&'a GasAdminKey> {
        let admin = self.admin;
        let key = self.shared.keys.get(&admin);
        key.ok_or_else(|| answer::refused(format_args!("there is no key of the gas admin {admin}")))
    }

    pub(crate) fn proposal(&self) -> Step<Proposal> {
        Proposal::of(&self.payment).map_err(answer::rejected)
    }

    /// How many transactions of the account the chain has.
    pub(crate) async fn count(&self) -> Step<u64> {
        let count = self.node.nonce_at(self.admin, BlockTag::Latest).await;
        count.map_err(answer::without_node)
    }

    /// To be looked at again soon.
    pub(crate) fn parked(&self, reason: impl Display) -> SubmissionAnswer {
        answer::parked(reason, self.shared.gate_interval)
    }
}

fn turn_of(submission: &Submission<AccountScopeId>) -> Step<BatchAttempt> {
    let batch_id: HeaderId = submission.batch_header().parse().map_err(answer::rejected)?;
    let Some(attempt_id) = submission.attempt_id() else {
        return Err(answer::refused("the batch has no attempt_id; nothing is signed without one"));
    };
    Ok(BatchAttempt {
        service_id: submission.scope_id().service_id().clone(),
        batch_id,
        attempt_id,
    })
}
