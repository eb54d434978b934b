use std::{fmt, sync::Arc};

use futures_core::future::BoxFuture;
use grid_batch_core::{
    BatchError, BatchResult, Evidence, EvidenceReader, ScopeId, UnresolvedBatch,
};
use grid_batch_withdrawals::{AssignedNonce, NonceOutcome, Payment};

use crate::{
    context::EvmContext,
    node::NodeClient,
    nonce::{NonceObservation, is_foreign_use_final, observe_nonce},
    scope::AccountScopeId,
};

/// Finds evidence about withdrawals: whether they have to be sent again. They are always sent again
/// with the nonce that they have.
pub struct EvmEvidenceReader(pub(crate) Arc<EvmContext>);

impl EvmEvidenceReader {
    async fn find(&self, batch: &UnresolvedBatch) -> BatchResult<Evidence> {
        let scope = AccountScopeId::from_service_id(&batch.service_id)
            .map_err(|error| BatchError::InternalError(error.to_string()))?;
        let payment = self.0.store.payment(&batch.service_id, batch.batch_id).await?;
        // The sender rejects a batch that belongs to no withdrawal.
        let Some(payment) = payment else { return Ok(Evidence::Repeatable) };
        let Some(assigned) = &payment.nonce else { return Ok(Evidence::Repeatable) };
        if let Some(outcome) = &assigned.outcome {
            return Ok(evidence_of_outcome(outcome));
        }
        let nodes = self.0.nodes_for(&self.0.read_http, &batch.service_id, &batch.batch_id)?;
        let best = observe_nonce(&nodes, &self.0, scope.address(), assigned).await?;
        match best.observation {
            NonceObservation::Mined(_) => Ok(Evidence::Present),
            NonceObservation::UsedElsewhere => {
                self.evidence_of_used_nonce(&scope, &payment, assigned, &nodes).await
            }
            NonceObservation::NotFound => Ok(Evidence::Repeatable),
            NonceObservation::Pending => Ok(self.evidence_of_pending(&payment, assigned)),
        }
    }

    /// A withdrawal may get another nonce only after an operator's retry, and only if the use of its
    /// nonce by another transaction is final.
    async fn evidence_of_used_nonce(
        &self,
        scope: &AccountScopeId,
        payment: &Payment,
        assigned: &AssignedNonce,
        nodes: &[NodeClient],
    ) -> BatchResult<Evidence> {
        if assigned.generation == payment.generation {
            return Ok(Evidence::Inconclusive);
        }
        match is_foreign_use_final(nodes, &self.0, scope.address(), assigned).await? {
            true => Ok(Evidence::Repeatable),
            false => Ok(Evidence::Inconclusive),
        }
    }

    fn evidence_of_pending(&self, payment: &Payment, assigned: &AssignedNonce) -> Evidence {
        if must_be_cancelled(payment, assigned) || self.is_pending_too_long(assigned) {
            return Evidence::Repeatable;
        }
        Evidence::Present
    }

    fn is_pending_too_long(&self, assigned: &AssignedNonce) -> bool {
        let now = self.0.clock.now();
        let sent_at =
            assigned.transactions.iter().filter_map(|transaction| transaction.sent_at).max();
        sent_at.is_none_or(|sent_at| now.since(sent_at) > self.0.resend_after)
    }
}

fn must_be_cancelled(payment: &Payment, assigned: &AssignedNonce) -> bool {
    let has_filler = assigned.transactions.iter().any(|transaction| transaction.signed.is_filler);
    payment.cancel_requested && !has_filler
}

/// A failure is reported by the status reader; here it only must not be sent again.
fn evidence_of_outcome(outcome: &NonceOutcome) -> Evidence {
    match outcome {
        NonceOutcome::Withdrawn { .. } => Evidence::Committed,
        NonceOutcome::Reverted | NonceOutcome::Cancelled => Evidence::Present,
        NonceOutcome::UsedElsewhere => Evidence::Repeatable,
    }
}

impl EvidenceReader for EvmEvidenceReader {
    fn find_evidence<'a>(
        &'a self,
        batch: &'a UnresolvedBatch,
    ) -> BoxFuture<'a, BatchResult<Evidence>> {
        Box::pin(self.find(batch))
    }
}

impl fmt::Debug for EvmEvidenceReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EvmEvidenceReader").field("nodes", &self.0.nodes).finish_non_exhaustive()
    }
}
