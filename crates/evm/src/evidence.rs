use grid_batch_core::evidence::{Evidence, EvidenceReport, UnresolvedBatch};
use grid_batch_core::{BatchError, BatchResult, ScopeId};
use grid_batch_withdrawals::{AssignedNonce, NonceOutcome, Payment};

use crate::{
    Evm,
    account::{Account, AccountError},
    context::EvmContext,
    node::NodeClient,
    nonce::NonceObservation,
    scope::AccountScopeId,
    settle::{Settled, UsedNonce},
};

/// Finds evidence about whether withdrawals must be sent again. They are always sent again with the nonce that they
/// have.
impl Evm {
    pub(crate) async fn find(&self, batch: &UnresolvedBatch) -> BatchResult<EvidenceReport> {
        let scope = AccountScopeId::from_service_id(&batch.service_id)
            .map_err(|error| BatchError::InternalError(error.to_string()))?;
        let context = &*self.context;
        let payment = context.store.payment(&batch.service_id, &batch.batch_id).await?;
        // The sender rejects a batch that belongs to no withdrawal.
        let Some(payment) = payment else { return Ok(Evidence::Repeatable.into()) };
        let nodes = || context.nodes_for(&batch.service_id, &batch.batch_id);
        let Some(assigned) = &payment.nonce else {
            return Ok(evidence_without_nonce(context, &scope, nodes).await?.into());
        };
        if let Some(outcome) = &assigned.outcome {
            return Ok(evidence_of_outcome(outcome).into());
        }
        let account = Account { context, nodes: &nodes()?, scope: &scope };
        match account.observe(assigned).await?.observation {
            NonceObservation::Mined(_) => Ok(Evidence::Present.into()),
            NonceObservation::UsedElsewhere => {
                let report = evidence_of_used_nonce(account, &payment, assigned).await?;
                // The status reader noted which transaction used the nonce.
                Ok(EvidenceReport { detail: assigned.note.clone(), ..report })
            }
            NonceObservation::NotFound => Ok(Evidence::Repeatable.into()),
            NonceObservation::Pending => Ok(self.evidence_of_pending(&payment, assigned).into()),
        }
    }

    fn evidence_of_pending(&self, payment: &Payment, assigned: &AssignedNonce) -> Evidence {
        if must_be_cancelled(payment, assigned) || self.is_pending_too_long(assigned) {
            return Evidence::Repeatable;
        }
        Evidence::Present
    }

    fn is_pending_too_long(&self, assigned: &AssignedNonce) -> bool {
        let mut sent = assigned.transactions.iter().filter(|it| it.sent_at.is_some());
        sent.all(|transaction| self.context.is_pending_too_long(transaction.signed.hash))
    }
}

/// Before it signs, the sender examines the nonces that are not settled. While it is undecided what a nonce was used
/// for, the withdrawal is not sent again.
async fn evidence_without_nonce(
    context: &EvmContext,
    scope: &AccountScopeId,
    nodes: impl Fn() -> BatchResult<Vec<NodeClient>>,
) -> BatchResult<Evidence> {
    let unsettled = context.store.unsettled_nonces(scope.service_id()).await?;
    if unsettled.stored.iter().all(|nonce| nonce.undecided.is_none()) {
        return Ok(Evidence::Repeatable);
    }
    match settle_at_any(context, scope, nodes()?).await? {
        Settled::All { .. } => Ok(Evidence::Repeatable),
        Settled::NotYet(_) | Settled::Undecided { .. } => Ok(Evidence::Inconclusive),
    }
}

/// Settles nonces with the first node that answers.
async fn settle_at_any(
    context: &EvmContext,
    scope: &AccountScopeId,
    mut nodes: Vec<NodeClient>,
) -> BatchResult<Settled> {
    let mut settled = Account { context, nodes: &nodes, scope }.settle_nonces().await;
    for _ in 1..nodes.len() {
        if !matches!(settled, Err(AccountError::Node(_))) {
            break;
        }
        nodes.rotate_left(1);
        settled = Account { context, nodes: &nodes, scope }.settle_nonces().await;
    }
    Ok(settled?)
}

/// A withdrawal gets another nonce only if a final foreign transaction used its nonce. Until then the nodes are asked
/// again soon, and no operator is needed.
async fn evidence_of_used_nonce(
    account: Account<'_>,
    payment: &Payment,
    assigned: &AssignedNonce,
) -> BatchResult<EvidenceReport> {
    let Some(hash) = assigned.foreign_hash else { return Ok(Evidence::Inconclusive.into()) };
    Ok(match account.explain_used_nonce(payment, assigned, hash.into()).await? {
        UsedNonce::Own => Evidence::Present.into(),
        UsedNonce::Moved | UsedNonce::Foreign => Evidence::Repeatable.into(),
        UsedNonce::Undecided => Evidence::Inconclusive.into(),
        UsedNonce::NotFinal => {
            let again_in = Some(account.context.options.gate_interval);
            EvidenceReport { again_in, ..Evidence::Inconclusive.into() }
        }
    })
}

fn must_be_cancelled(payment: &Payment, assigned: &AssignedNonce) -> bool {
    let has_filler = assigned.transactions.iter().any(|transaction| transaction.signed.is_filler);
    payment.cancel_requested && !has_filler
}

/// The status reader reports a failure. Here it only matters that the withdrawal is not sent again.
fn evidence_of_outcome(outcome: &NonceOutcome) -> Evidence {
    match outcome {
        NonceOutcome::Withdrawn { .. }
        | NonceOutcome::Executed { .. }
        | NonceOutcome::WithoutEvent => Evidence::Committed,
        NonceOutcome::Reverted | NonceOutcome::Cancelled => Evidence::Present,
        NonceOutcome::UsedElsewhere => Evidence::Repeatable,
    }
}
