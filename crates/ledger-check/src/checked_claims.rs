use std::{
    collections::HashSet,
    sync::{Arc, Mutex},
};

use grid_batch_core::claims::{ClaimKeeper, SubmittedBatch, Takeover};
use grid_batch_core::ledger::Ledger;
use grid_batch_core::queue::{BatchFits, Round, RoundStore, ServiceShare, TakenBatch};
use grid_batch_core::{BatchResult, ServiceId};
use grid_batch_support::lock;
use log::warn;

use crate::LedgerCheck;

/// Claims services and takes their batches while the ledger is confirmed, except for services that the ledger cannot
/// have.
#[derive(Clone)]
pub struct CheckedClaims<C> {
    claims: C,
    check: LedgerCheck,
    ledger: Arc<dyn Ledger>,
    /// The services that the ledger cannot have and that have been logged.
    refused: Arc<Mutex<HashSet<ServiceId>>>,
}

impl<C> CheckedClaims<C> {
    /// At most this many refused services are logged, because each is kept in memory.
    const MOST_LOGGED: usize = 1_000;

    /// Wraps these claims, which are passed on as far as the check and the ledger allow.
    pub fn new(claims: C, check: LedgerCheck, ledger: Arc<dyn Ledger>) -> Self {
        Self { claims, check, ledger, refused: Arc::default() }
    }

    /// Whether the ledger can have the service. One that it cannot have is logged once.
    fn accepts(&self, service: &ServiceId) -> bool {
        let Err(error) = self.ledger.check_service_id(service) else { return true };
        let mut logged = lock(&self.refused);
        if logged.len() < Self::MOST_LOGGED && logged.insert(service.clone()) {
            warn!(service:%, error:%;
                "the ledger cannot have this service; its batches are neither submitted nor followed");
        }
        false
    }

    /// The takeover, without the services that the ledger cannot have. These stay claimed, and nothing is done with
    /// them: no other instance could do anything with them either.
    fn accepted(&self, take: impl FnOnce() -> BatchResult<Takeover>) -> BatchResult<Takeover> {
        if !self.check.may_claim() {
            return Ok(Takeover::default());
        }
        let mut takeover = take()?;
        takeover.claims.retain(|claim| self.accepts(&claim.service_id));
        takeover.in_doubt.retain(|(service, _)| self.accepts(service));
        Ok(takeover)
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
        self.accepted(|| self.claims.take(limit))
    }

    fn take_services(&self, services: &[ServiceId]) -> BatchResult<Takeover> {
        self.accepted(|| self.claims.take_services(services))
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
    /// Skips pages that have only services that the ledger cannot have, so that the caller gets the services behind
    /// them.
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
            accepted.extend(found.into_iter().filter(|service| self.accepts(service)));
            if is_last || accepted.len() >= limit {
                accepted.truncate(limit);
                return Ok(accepted);
            }
        }
    }

    fn take_round(&self, shares: &[ServiceShare], fits: &mut BatchFits<'_>) -> BatchResult<Round> {
        if !self.check.may_claim() {
            return Ok(Round::default());
        }
        self.claims.take_round(shares, fits)
    }

    fn give_back(&self, batches: &[TakenBatch]) -> BatchResult<()> {
        self.claims.give_back(batches)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use grid_batch_core::ledger::LedgerIdentity;
    use grid_batch_core::{GlobalScopeId, ScopeId, ScopeIdError};
    use grid_batch_nodes::NodePool;

    use super::*;

    /// A ledger without services.
    struct Global;

    impl Ledger for Global {
        grid_batch_core::unused_ledger_methods!();

        fn check_service_id(&self, service_id: &ServiceId) -> Result<(), ScopeIdError> {
            GlobalScopeId::from_service_id(service_id).map(drop)
        }
    }

    #[test]
    fn services_that_the_ledger_cannot_have_are_refused() {
        let identity = LedgerIdentity::new("sawtooth");
        let check = LedgerCheck::new(identity, NodePool::default(), Duration::ZERO);
        let claims = CheckedClaims::new((), check, Arc::new(Global));
        let [global, named] = ["global", "a::b"].map(|id| id.parse::<ServiceId>().unwrap());
        assert!(claims.accepts(&global) && !claims.accepts(&named));
        assert!(!claims.accepts(&named));
        assert_eq!(lock(&claims.refused).len(), 1);
    }
}
