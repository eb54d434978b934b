use std::{fmt, sync::Arc};

use futures_core::future::BoxFuture;
use grid_batch_core::{
    BatchResult, BatchStatusReader, HeaderId, LedgerStatus, OpenNonce, ScopeId, StatusReport,
};
use log::warn;

use crate::{
    AccountScopeId,
    asking::{first_sighting, usable},
    ending::Ending,
    node::{BlockTag, Node},
    proposal::Proposal,
    said::Said,
    shared::Shared,
    sighting::{Mined, Sighting},
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
        let Some(open) = &payment.open else { return Ok(Said::nothing()) };
        if let Some(spent) = &open.spent {
            return Ok(Said::of(spent, open.note.clone()));
        }
        let nodes = self.0.nodes_of(&self.0.asking, scope.service_id(), &batch_id)?;
        let (node, sighting) = first_sighting(&nodes, scope.address(), open).await?;
        match &sighting {
            Sighting::Mined(mined) if self.is_final(node, scope, open, mined).await? => {
                let proposal = usable(Proposal::of(&payment))?;
                let ending = Ending::of(mined, node, scope.address(), &proposal).await?;
                self.end(scope, open, ending).await
            }
            sighting => {
                self.note(scope, open, sighting).await?;
                Ok(Said::seen(sighting))
            }
        }
    }

    /// Several nodes may answer in one's name. One that is behind shows a block that the others have
    /// replaced: so the last block that makes it final is asked, too, whether it counts the nonce.
    async fn is_final(
        &self,
        node: &Node,
        scope: &AccountScopeId,
        open: &OpenNonce,
        mined: &Mined<'_>,
    ) -> BatchResult<bool> {
        let last = mined.final_with(self.0.confirmations);
        if node.block_number().await? < last {
            return Ok(false);
        }
        let count = node.nonce_at(scope.address(), BlockTag::Number(last)).await?;
        Ok(count > open.nonce)
    }

    /// Keeps in mind, for people, what is seen of a nonce.
    async fn note(
        &self,
        scope: &AccountScopeId,
        open: &OpenNonce,
        sighting: &Sighting<'_>,
    ) -> BatchResult<()> {
        let note = sighting.note(scope.address(), open.nonce, self.0.confirmations);
        if note == open.note {
            return Ok(());
        }
        if let (Sighting::Elsewhere, Some(note)) = (sighting, &note) {
            warn!(service:% = scope, note = note.as_str(); "somebody else may use the gas admin's key");
        }
        self.0.records.note(scope.service_id(), open.nonce, note).await
    }

    /// Writes down how a withdrawal has ended: the note first, so that whoever finds it ended knows
    /// why.
    async fn end(
        &self,
        scope: &AccountScopeId,
        open: &OpenNonce,
        Ending { spent, note }: Ending,
    ) -> BatchResult<Said> {
        let records = &self.0.records;
        records.note(scope.service_id(), open.nonce, Some(note.clone())).await?;
        // A person is to look.
        let Some(spent) = spent else { return Ok(Said::just(LedgerStatus::Valid)) };
        records.spend(scope.service_id(), open.nonce, spent.clone()).await?;
        Ok(Said::of(&spent, Some(note)))
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
