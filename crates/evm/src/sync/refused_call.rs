use alloy_primitives::Address;
use futures_util::future::join_all;
use grid_batch_core::BatchResult;
use grid_batch_support::redact_url;
use grid_batch_withdrawals::Payment;

use super::{
    node_state::NodeProgress,
    quorum::{NodeVote, RefusalOutcome, Vote, decide},
    simulation::{PoolRefusal, simulate},
};
use crate::{
    account::Account,
    action::Action,
    node::{NodeClient, NodeError},
};

/// The answer of a node: its progress, and whether the pool would make the withdrawal.
type NodeAnswer = Result<(NodeProgress, Option<PoolRefusal>), NodeError>;

impl Account<'_> {
    /// Decides whether a withdrawal that one node refuses has failed. The first node is that of the attempt.
    ///
    /// The nodes are asked again, each after it has reported its progress, because an earlier answer may be about an
    /// older block. A withdrawal fails only if they give the same answer at a later block.
    pub(crate) async fn resolve_refusal(
        &self,
        payment: &Payment,
        action: &Action,
        refusal: &PoolRefusal,
    ) -> BatchResult<RefusalOutcome> {
        let (context, admin) = (self.context, self.address());
        if let Some(stored) = context.store.highest_block().await? {
            context.highest_block.see(stored);
        }
        let asked = self.nodes.iter().map(|node| read(node, admin, payment, action));
        let answers = join_all(asked).await;
        let heads = answers.iter().flatten().map(|(state, _)| state.head.id.number);
        let highest = heads.fold(context.highest_block.get(), u64::max);
        let monotonic = context.monotonic();
        let seen = context.pool_refusals.required_block(admin, payment, highest, monotonic);
        let now = context.options.clock.now();
        let lag = |state: &NodeProgress| state.lag(seen, context.options.head_age_limit, now);
        let votes = self.nodes.iter().zip(answers);
        let votes: Vec<NodeVote> =
            votes.map(|(node, answer)| (redact_url(node.url()), vote(answer, lag))).collect();
        let refused_at = votes.iter().filter_map(|(_, vote)| match vote {
            Vote::Refuses(_, block) => Some(*block),
            Vote::None(_) | Vote::Accepts => None,
        });
        let refused_at = refused_at.min();
        let outcome = decide(refusal, &votes, context.options.agreeing_nodes);
        let (RefusalOutcome::Final(refusal), Some(block)) = (&outcome, refused_at) else {
            context.pool_refusals.forget(admin, payment);
            return Ok(outcome);
        };
        if let PoolRefusal::NoContract(pool) = refusal
            && context.store.has_paid(&payment.pool).await?
        {
            return Ok(RefusalOutcome::Wait(format!(
                "there is no contract at the pool {pool}, which has paid before: the nodes are wrong or on \
                 another chain, or the contract was removed; correct ledger.urls, or cancel the withdrawal if the contract \
                 was removed"
            )));
        }
        let (refusal, limit) = (refusal.clone(), context.options.resend_after);
        Ok(context.pool_refusals.confirm(admin, payment, refusal, block, monotonic, limit))
    }
}

/// The progress is read first, so that the simulation runs on that block or a later one.
async fn read(node: &NodeClient, admin: Address, payment: &Payment, action: &Action) -> NodeAnswer {
    let state = NodeProgress::read(node).await?;
    Ok((state, simulate(node, admin, payment, action).await?.err()))
}

fn vote(answer: NodeAnswer, lag: impl Fn(&NodeProgress) -> Option<String>) -> Vote {
    match answer {
        Err(error) => Vote::None(format!("does not answer: {error}")),
        Ok((state, refusal)) => match (lag(&state), refusal) {
            (Some(lag), _) => Vote::None(lag),
            (None, None) => Vote::Accepts,
            (None, Some(refusal)) => Vote::Refuses(refusal, state.head.id.number),
        },
    }
}
