use std::{fmt, sync::Arc};

use futures_core::future::BoxFuture;
use grid_batch_core::{
    BatchResult, BatchStatusReader, HeaderId, LedgerStatus, ScopeId, StatusReport,
};
use grid_batch_withdrawals::AssignedNonce;
use log::{info, warn};

use crate::{
    AccountScopeId,
    asking::{Seen, look, usable},
    ending::Ending,
    node::Node,
    proposal::Proposal,
    said::Said,
    shared::Shared,
    sighting::Sighting,
    user::user_of,
};

/// Reads from the chain what became of withdrawals, and writes it down for good.
pub struct EvmStatusReader(pub(crate) Arc<Shared>);

impl EvmStatusReader {
    async fn read(&self, service_id: &str, batch_ids: &[String]) -> BatchResult<Vec<StatusReport>> {
        let scope = usable(service_id.parse())?;
        let mut reports = Vec::with_capacity(batch_ids.len());
        for batch_id in batch_ids {
            let said = self.ask(&scope, usable(batch_id.parse())?).await?;
            reports.push(said.report(batch_id));
        }
        Ok(reports)
    }

    async fn ask(&self, scope: &AccountScopeId, batch_id: HeaderId) -> BatchResult<Said> {
        let payment = self.0.records.payment(scope.service_id(), batch_id).await?;
        let Some(payment) = payment else { return Ok(Said::nothing()) };
        let Some(open) = &payment.nonce else { return Ok(Said::nothing()) };
        if let Some(outcome) = &open.outcome {
            return Ok(Said::of(outcome, open.note.clone()));
        }
        let nodes = self.0.nodes_of(&self.0.asking, scope.service_id(), &batch_id)?;
        let Seen { node, sighting, is_final } =
            look(&nodes, &self.0, scope.address(), open).await?;
        match &sighting {
            Sighting::Mined(mined) if is_final => {
                let proposal = usable(Proposal::of(&payment))?;
                let ending = Ending::of(mined, node, scope.address(), &proposal).await?;
                return self.end(scope, open, ending).await;
            }
            Sighting::Mined(mined) => {
                self.note(scope, open, Some(mined.note(self.0.confirmations))).await?;
            }
            Sighting::Elsewhere => return self.find_user(&nodes, scope, open).await,
            Sighting::Waiting | Sighting::Gone => self.note(scope, open, None).await?,
        }
        Ok(Said::seen(&sighting))
    }

    /// The nonce is used, and nothing of ours is shown: so it is to be shown what used it.
    async fn find_user(
        &self,
        nodes: &[Node],
        scope: &AccountScopeId,
        open: &AssignedNonce,
    ) -> BatchResult<Said> {
        let (nonce, admin) = (open.nonce, scope.address());
        let Some(hash) = user_of(nodes, &self.0, admin, open).await? else {
            let note = format!("nonce {nonce} is used, and no receipt of ours is shown yet");
            self.note(scope, open, Some(note)).await?;
            return Ok(Said::nothing());
        };
        if open.transactions.iter().any(|ours| ours.signed.hash == hash) {
            // The node's receipts lag behind its blocks.
            self.note(scope, open, None).await?;
            return Ok(Said::just(LedgerStatus::Pending));
        }
        let note =
            format!("nonce {nonce} of {admin} was used by {hash}, which was not signed here");
        if open.foreign_hash != Some(hash.into()) {
            warn!(service:% = scope, note = note.as_str(); "somebody else uses the gas admin's key");
            self.0.records.record_foreign_use(scope.service_id(), nonce, hash.into()).await?;
        }
        self.note(scope, open, Some(note)).await?;
        Ok(Said::nothing())
    }

    /// Keeps in mind, for people, what is seen of a nonce.
    async fn note(
        &self,
        scope: &AccountScopeId,
        open: &AssignedNonce,
        note: Option<String>,
    ) -> BatchResult<()> {
        if note == open.note {
            return Ok(());
        }
        self.0.records.note(scope.service_id(), open.nonce, note).await
    }

    /// Writes down how a withdrawal has ended: the note first, so that whoever finds it ended knows
    /// why.
    async fn end(
        &self,
        scope: &AccountScopeId,
        open: &AssignedNonce,
        Ending { outcome, note }: Ending,
    ) -> BatchResult<Said> {
        let records = &self.0.records;
        records.note(scope.service_id(), open.nonce, Some(note.clone())).await?;
        // A person is to look.
        let Some(outcome) = outcome else { return Ok(Said::just(LedgerStatus::Valid)) };
        records.close_nonce(scope.service_id(), open.nonce, outcome.clone()).await?;
        info!(service:% = scope, nonce = open.nonce, end = note.as_str(); "a withdrawal has ended");
        Ok(Said::of(&outcome, Some(note)))
    }
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
