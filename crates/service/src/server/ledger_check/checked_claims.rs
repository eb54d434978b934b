use std::sync::Arc;

use grid_batch_core::{
    BatchFits, BatchResult, ClaimKeeper, Ledger, Round, RoundStore, ServiceId, ServiceShare,
    SubmittedBatch, TakenBatch, Takeover,
};
use grid_batch_submitter::Recalls;

use super::{LedgerCheck, refused_services::RefusedServices};

/// Claims services, and takes batches of services that the ledger can have, while the ledger is
/// confirmed.
#[derive(Clone)]
pub(in crate::server) struct CheckedClaims<C> {
    claims: C,
    check: LedgerCheck,
    refused: Arc<RefusedServices>,
    recalls: Recalls,
}

impl<C> CheckedClaims<C> {
    /// What is taken can be called back by `recalls`.
    pub(in crate::server) fn new(
        claims: C,
        check: LedgerCheck,
        ledger: Arc<dyn Ledger>,
        recalls: Recalls,
    ) -> Self {
        Self { claims, check, refused: Arc::new(RefusedServices::new(ledger)), recalls }
    }

    /// The takeover without the services that the ledger cannot have. These stay claimed and nothing is
    /// done with them, because no other instance could do anything with them either.
    fn accepted(&self, mut takeover: Takeover) -> Takeover {
        takeover.claims.retain(|claim| self.refused.accepts(&claim.service_id));
        takeover.in_doubt.retain(|(service, _)| self.refused.accepts(service));
        takeover
    }
}

impl<C: ClaimKeeper> ClaimKeeper for CheckedClaims<C> {
    fn renew(&self) -> BatchResult<bool> {
        self.claims.renew()
    }

    fn register_again(&self) -> BatchResult<()> {
        self.claims.register_again()
    }

    fn take(&self, limit: usize) -> BatchResult<Takeover> {
        match self.check.may_claim() {
            true => Ok(self.accepted(self.claims.take(limit)?)),
            false => Ok(Takeover::default()),
        }
    }

    fn take_services(&self, services: &[ServiceId]) -> BatchResult<Takeover> {
        match self.check.may_claim() {
            true => Ok(self.accepted(self.claims.take_services(services)?)),
            false => Ok(Takeover::default()),
        }
    }

    fn with_submitter(&self) -> BatchResult<Vec<SubmittedBatch>> {
        self.claims.with_submitter()
    }

    fn recover(&self, orphans: &[SubmittedBatch]) -> BatchResult<Vec<SubmittedBatch>> {
        self.claims.recover(orphans)
    }

    fn release(&self) -> BatchResult<usize> {
        self.claims.release()
    }
}

impl<C: RoundStore> RoundStore for CheckedClaims<C> {
    /// Pages of services that the ledger cannot have are skipped, so that the caller finds those
    /// behind them.
    fn ready_services(
        &self,
        after: Option<&ServiceId>,
        limit: usize,
    ) -> BatchResult<Vec<ServiceId>> {
        let mut accepted = Vec::new();
        let mut after = after.cloned();
        loop {
            let found = self.claims.ready_services(after.as_ref(), limit)?;
            let is_last = found.len() < limit;
            after = found.last().cloned();
            accepted.extend(found.into_iter().filter(|service| self.refused.accepts(service)));
            if is_last || accepted.len() >= limit {
                accepted.truncate(limit);
                return Ok(accepted);
            }
        }
    }

    fn take_round(&self, shares: &[ServiceShare], fits: &mut BatchFits<'_>) -> BatchResult<Round> {
        match self.check.may_claim() {
            true => {
                let round = self.claims.take_round(shares, fits)?;
                self.recalls.taken(&round.batches);
                Ok(round)
            }
            false => Ok(Round::default()),
        }
    }

    fn give_back(&self, batches: &[TakenBatch]) -> BatchResult<()> {
        self.recalls.given_back(batches);
        self.claims.give_back(batches)
    }
}
