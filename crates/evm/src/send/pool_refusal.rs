use grid_batch_core::SubmissionAnswer;

use super::{
    answer::{self, Step},
    attempt::SendAttempt,
};
use crate::{
    pool::PoolCall,
    sync::{PoolRefusal, RefusalOutcome, resolve_refusal},
};

impl SendAttempt<'_> {
    /// The end of an attempt whose node says that the pool refuses the withdrawal.
    pub(super) async fn refused_by_node(
        &self,
        call: &PoolCall,
        refusal: &PoolRefusal,
    ) -> SubmissionAnswer {
        self.resolve(call, refusal).await.unwrap_or_else(|answer| answer)
    }

    async fn resolve(&self, call: &PoolCall, refusal: &PoolRefusal) -> Step<SubmissionAnswer> {
        let (context, nodes) = (self.context, self.nodes()?);
        let refused = (call, refusal);
        let outcome = resolve_refusal(context, &nodes, self.admin, &self.payment, refused).await;
        Ok(match outcome.map_err(answer::store_failed)? {
            RefusalOutcome::Final(refusal) => answer::rejected(refusal),
            RefusalOutcome::OtherNode(reason) => answer::not_sent(reason),
            RefusalOutcome::Wait(reason) => self.pool_parked(reason),
        })
    }
}
