use std::{fmt, sync::Arc};

use futures_core::future::BoxFuture;
use grid_batch_core::{BatchResult, Evidence, EvidenceReader, ScopeId, UnresolvedBatch};
use grid_batch_withdrawals::{AssignedNonce, NonceOutcome, Payment};

use crate::{
    AccountScopeId,
    asking::{look, usable},
    lost::is_lost,
    node::Node,
    shared::Shared,
    sighting::Sighting,
};

/// Says whether a withdrawal is to be sent again: always with the nonce that it has.
pub struct EvmEvidenceReader(pub(crate) Arc<Shared>);

impl EvmEvidenceReader {
    async fn find(&self, doubt: &UnresolvedBatch) -> BatchResult<Evidence> {
        let scope = usable(AccountScopeId::from_service_id(&doubt.service_id))?;
        let payment = self.0.records.payment(&doubt.service_id, doubt.batch_id).await?;
        // What is no withdrawal, the sender rejects.
        let Some(payment) = payment else { return Ok(Evidence::Repeatable) };
        let Some(open) = &payment.nonce else { return Ok(Evidence::Repeatable) };
        if let Some(outcome) = &open.outcome {
            return Ok(evidence_of(outcome));
        }
        let nodes = self.0.nodes_of(&self.0.asking, &doubt.service_id, &doubt.batch_id)?;
        let seen = look(&nodes, &self.0, scope.address(), open).await?;
        self.weigh(&scope, &payment, open, &seen.sighting, &nodes).await
    }

    async fn weigh(
        &self,
        scope: &AccountScopeId,
        payment: &Payment,
        open: &AssignedNonce,
        sighting: &Sighting<'_>,
        nodes: &[Node],
    ) -> BatchResult<Evidence> {
        Ok(match sighting {
            Sighting::Mined(_) => Evidence::Present,
            Sighting::Elsewhere if self.may_have_another(scope, payment, open, nodes).await? => {
                Evidence::Repeatable
            }
            Sighting::Elsewhere => Evidence::Inconclusive,
            Sighting::Gone => Evidence::Repeatable,
            Sighting::Waiting if is_to_cancel(payment, open) || self.waits_too_long(open) => {
                Evidence::Repeatable
            }
            Sighting::Waiting => Evidence::Present,
        })
    }

    /// Only a person lets a withdrawal have another nonce: by having it tried anew.
    async fn may_have_another(
        &self,
        scope: &AccountScopeId,
        payment: &Payment,
        open: &AssignedNonce,
        nodes: &[Node],
    ) -> BatchResult<bool> {
        if open.generation == payment.generation {
            return Ok(false);
        }
        Ok(is_lost(nodes, &self.0, scope.address(), open).await?)
    }

    fn waits_too_long(&self, open: &AssignedNonce) -> bool {
        let now = self.0.clock.now();
        let sent_at = open.transactions.iter().filter_map(|transaction| transaction.sent_at).max();
        sent_at.is_none_or(|sent_at| now.since(sent_at) > self.0.resend_after)
    }
}

fn is_to_cancel(payment: &Payment, open: &AssignedNonce) -> bool {
    payment.cancel_requested
        && !open.transactions.iter().any(|transaction| transaction.signed.is_filler)
}

/// What is known for good. All but a commit is read as a status; it only must not be sent again.
fn evidence_of(outcome: &NonceOutcome) -> Evidence {
    match outcome {
        NonceOutcome::Withdrawn { .. } => Evidence::Committed,
        NonceOutcome::Reverted | NonceOutcome::Cancelled => Evidence::Present,
        NonceOutcome::UsedElsewhere => Evidence::Repeatable,
    }
}

impl EvidenceReader for EvmEvidenceReader {
    fn find_evidence<'a>(
        &'a self,
        doubt: &'a UnresolvedBatch,
    ) -> BoxFuture<'a, BatchResult<Evidence>> {
        Box::pin(self.find(doubt))
    }
}

impl fmt::Debug for EvmEvidenceReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EvmEvidenceReader").field("nodes", &self.0.nodes).finish_non_exhaustive()
    }
}
