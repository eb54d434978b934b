use std::{
    fmt::{self, Display},
    sync::Arc,
};

use futures_core::future::BoxFuture;
use grid_batch_core::{
    BatchError, BatchResult, BatchStatusReader, HeaderId, LedgerStatus, ScopeId, StatusReport,
};
use grid_batch_withdrawals::{AssignedNonce, Payment};
use log::{info, warn};

use super::{final_result::FinalResult, withdrawal_status::WithdrawalStatus};
use crate::{
    context::EvmContext,
    node::NodeClient,
    nonce::{BestObservation, NonceObservation, find_nonce_user, observe_nonce},
    pool::PoolCall,
    scope::AccountScopeId,
    settle::{UsedNonce, explain_used_nonce},
};

/// Reads the statuses of withdrawals from the chain, and stores how they ended.
pub struct EvmStatusReader(pub(crate) Arc<EvmContext>);

impl EvmStatusReader {
    async fn read(&self, service_id: &str, batch_ids: &[String]) -> BatchResult<Vec<StatusReport>> {
        let scope = parsed(service_id.parse())?;
        let mut reports = Vec::with_capacity(batch_ids.len());
        for batch_id in batch_ids {
            let status = self.status(&scope, parsed(batch_id.parse())?).await?;
            reports.push(status.into_report(batch_id));
        }
        Ok(reports)
    }

    async fn status(
        &self,
        scope: &AccountScopeId,
        batch_id: HeaderId,
    ) -> BatchResult<WithdrawalStatus> {
        let payment = self.0.store.payment(scope.service_id(), batch_id).await?;
        let Some(payment) = payment else { return Ok(WithdrawalStatus::not_reported()) };
        let Some(assigned) = &payment.nonce else { return Ok(WithdrawalStatus::not_reported()) };
        if let Some(outcome) = &assigned.outcome {
            return Ok(WithdrawalStatus::from_outcome(outcome, assigned.note.clone()));
        }
        let nodes = self.0.nodes_for(&self.0.read_http, scope.service_id(), &batch_id)?;
        let BestObservation { node, observation, is_final } =
            observe_nonce(&nodes, &self.0, scope.address(), assigned).await?;
        match &observation {
            NonceObservation::Mined(mined) if is_final => {
                let call = parsed(PoolCall::for_payment(&payment))?;
                let result = FinalResult::read(mined, node, scope.address(), &call).await?;
                return self.store_final_result(scope, assigned, result).await;
            }
            NonceObservation::Mined(mined) => {
                self.note(scope, assigned, Some(mined.note(self.0.confirmations))).await?;
            }
            NonceObservation::UsedElsewhere => {
                return self.status_of_used_nonce(&nodes, scope, &payment, assigned).await;
            }
            NonceObservation::Pending | NonceObservation::NotFound => {
                self.note(scope, assigned, None).await?;
            }
        }
        Ok(WithdrawalStatus::from_observation(&observation))
    }

    /// The nonce is used, but no node shows one of its transactions: looks for the transaction that
    /// used it.
    async fn status_of_used_nonce(
        &self,
        nodes: &[NodeClient],
        scope: &AccountScopeId,
        payment: &Payment,
        assigned: &AssignedNonce,
    ) -> BatchResult<WithdrawalStatus> {
        let (nonce, admin) = (assigned.nonce, scope.address());
        let Some(hash) = find_nonce_user(nodes, &self.0, admin, assigned).await? else {
            let note =
                format!("nonce {nonce} is used, but no node shows a receipt of this withdrawal");
            self.note(scope, assigned, Some(note)).await?;
            return Ok(WithdrawalStatus::not_reported());
        };
        if assigned.transactions.iter().any(|ours| ours.signed.hash == hash) {
            // The node's receipts lag behind its blocks.
            self.note(scope, assigned, None).await?;
            return Ok(WithdrawalStatus::without_reason(LedgerStatus::Pending));
        }
        match explain_used_nonce(&self.0, nodes, scope, payment, assigned, hash).await? {
            UsedNonce::Own => return Ok(WithdrawalStatus::without_reason(LedgerStatus::Pending)),
            UsedNonce::Moved => return Ok(WithdrawalStatus::not_reported()),
            UsedNonce::Foreign => {}
        }
        let note = format!(
            "nonce {nonce} of {admin} was used by {hash}, which was not signed by this server"
        );
        if assigned.foreign_hash != Some(hash.into()) {
            warn!(service:% = scope, note = note.as_str(); "a transaction that is not stored used the nonce of a withdrawal");
            self.0.store.record_foreign_use(scope.service_id(), nonce, hash.into()).await?;
        }
        self.note(scope, assigned, Some(note)).await?;
        Ok(WithdrawalStatus::not_reported())
    }

    /// Stores a note for operators and clients, if it has changed.
    async fn note(
        &self,
        scope: &AccountScopeId,
        assigned: &AssignedNonce,
        note: Option<String>,
    ) -> BatchResult<()> {
        if note == assigned.note {
            return Ok(());
        }
        self.0.store.note(scope.service_id(), assigned.nonce, note).await
    }

    /// The note is stored before the outcome, so that a withdrawal with an outcome has its reason.
    async fn store_final_result(
        &self,
        scope: &AccountScopeId,
        assigned: &AssignedNonce,
        FinalResult { outcome, note }: FinalResult,
    ) -> BatchResult<WithdrawalStatus> {
        let (store, nonce) = (&self.0.store, assigned.nonce);
        store.note(scope.service_id(), nonce, Some(note.clone())).await?;
        let Some(outcome) = outcome else {
            return Ok(WithdrawalStatus::without_reason(LedgerStatus::Valid));
        };
        store.close_nonce(scope.service_id(), nonce, outcome.clone()).await?;
        info!(service:% = scope, nonce, end = note.as_str(); "a withdrawal has ended");
        Ok(WithdrawalStatus::from_outcome(&outcome, Some(note)))
    }
}

/// A value that the server itself passed in; an error is a bug.
fn parsed<T>(result: Result<T, impl Display>) -> BatchResult<T> {
    result.map_err(|error| BatchError::InternalError(error.to_string()))
}

impl BatchStatusReader for EvmStatusReader {
    type Status = StatusReport;

    fn get_batch_statuses<'a>(
        &'a self,
        service_id: &'a str,
        batch_ids: &'a [String],
    ) -> BoxFuture<'a, BatchResult<Vec<StatusReport>>> {
        Box::pin(self.read(service_id, batch_ids))
    }

    fn available_connections(&self) -> usize {
        self.0.connections
    }
}

impl fmt::Debug for EvmStatusReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EvmStatusReader").field("nodes", &self.0.nodes).finish_non_exhaustive()
    }
}
