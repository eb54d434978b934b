//! What all other parts work over: the settings, the store, the ledger and its nodes.

use std::{sync::Arc, time::Duration};

use grid_batch_claims::{NameInUse, wait_for_name};
use grid_batch_core::claims::ClaimKeeper;
use grid_batch_core::ledger::Ledger;
use grid_batch_ledger_check::{
    self as ledger_check, CheckedClaims, LedgerCheck, LedgerMismatchError,
};
use grid_batch_nodes::NodePool;
use grid_batch_store::{ClaimError, ClaimOptions, ClaimStore, Store, StoreError, StoreOptions};
use grid_batch_support::{Jobs, Stops};
use log::warn;

use super::{
    StartError,
    ledger::{OpenFn, ServerLedger},
};
use crate::Config;

/// What all other parts work over.
pub(super) struct Base<'a> {
    pub(super) config: &'a Config,
    pub(super) jobs: Jobs,
    pub(super) store: Store,
    pub(super) ledger: Arc<dyn Ledger>,
    pub(super) nodes: NodePool,
    pub(super) check: LedgerCheck,
    pub(super) claims: ClaimStore,
    /// The same, but none is taken before a node has confirmed its ledger.
    pub(super) checked_claims: CheckedClaims<ClaimStore>,
}

impl<'a> Base<'a> {
    /// Opens the store and the ledger, and registers the instance. Also returns the ledger with what it has besides its
    /// adapter.
    pub(super) fn open(
        config: &'a Config,
        check: LedgerCheck,
        open_ledger: OpenFn<'_>,
    ) -> Result<(Self, ServerLedger), StartError> {
        let store = open_store(config)?;
        let opened = open_ledger(&store)?;
        let claims = wait_for_name(|| register(config, &store, &*opened.ledger), name_in_use);
        let claims = claims.map_err(|source| store_error(config, source))?;
        if let Some(missing) = config.missing_peers() {
            warn!("{missing}; list the other nodes of its circuit");
        }
        let (ledger, nodes) = (Arc::clone(&opened.ledger), check.pool().clone());
        let jobs = Jobs::start()?;
        let checked_claims = CheckedClaims::new(claims.clone(), check.clone(), Arc::clone(&ledger));
        Ok((Self { config, jobs, store, ledger, nodes, check, claims, checked_claims }, opened))
    }

    /// Asks all nodes, and waits a moment for their answers. Without them the server starts all the same,
    /// so that it takes requests while the ledger is down.
    pub(super) fn start_ledger_check(&self, stops: &mut Stops) -> Result<(), StartError> {
        const FIRST_ANSWERS_LIMIT: Duration = Duration::from_secs(2);
        let was_bound = self.store.ledger().map_err(StartError::part)?.is_some();
        let confirming = self.claims.clone();
        let confirm = Arc::new(move |ledger: &_| Ok(confirming.confirm_ledger(ledger)?));
        let (check, ledger) = (self.check.clone(), Arc::clone(&self.ledger));
        stops.last_jobs([ledger_check::start(check, ledger, confirm, was_bound, &self.jobs)]);
        ledger_check::wait_for_answers(&self.check, FIRST_ANSWERS_LIMIT);
        if let Some(mismatch) = self.check.mismatch() {
            if let Err(error) = self.claims.release() {
                warn!(error:%; "cannot remove the instance; it expires");
            }
            return Err(mismatch.clone().into());
        }
        if let Some(problem) = self.check.problem() {
            warn!(problem = problem.as_str(); "the server starts without its ledger");
        }
        Ok(())
    }
}

fn open_store(config: &Config) -> Result<Store, StartError> {
    // The health has a connection of its own, and the listener to notifications of PostgreSQL has one.
    let is_file = config.general.database.file().is_some();
    let reserved = if is_file { 1 } else { 2 };
    let connections = config.store.connections.saturating_sub(reserved).max(1);
    let options = StoreOptions { connections, ..config.store_options() };
    let failed = |source| store_error(config, source);
    let store = Store::open(&config.general.database, options).map_err(failed)?;
    if let (Some(configured), Some(recorded)) =
        (config.ledger_identity(), store.ledger().map_err(failed)?)
    {
        LedgerMismatchError::of_settings(&configured, &recorded)?;
    }
    for warning in store.durability_warnings().map_err(failed)? {
        warn!(database:% = config.general.database; "{warning}");
    }
    Ok(store)
}

/// Registers the instance for the services that this ledger can have.
fn register(config: &Config, store: &Store, ledger: &dyn Ledger) -> Result<ClaimStore, StoreError> {
    let accepts = |service: &_| ledger.check_service_id(service).is_ok();
    ClaimStore::register_for(store.clone(), claim_options(config), accepts)
}

fn name_in_use(error: &StoreError) -> Option<NameInUse> {
    match error {
        StoreError::Claims(ClaimError::NameInUse { name, holder, until }) => {
            let (name, holder) = (name.clone(), holder.clone());
            Some(NameInUse { name, holder, until: *until })
        }
        _ => None,
    }
}

fn store_error(config: &Config, source: StoreError) -> StartError {
    StartError::Store { database: config.general.database.to_string(), source }
}

fn claim_options(config: &Config) -> ClaimOptions {
    ClaimOptions {
        name: config.claims.name.clone(),
        idle_expiry: config.claims.idle_expiry,
        full_expiry: config.times().full_expiry,
        longest_submission: config.longest_submission(),
        fair_share: config.claims.share,
        settings: Some(config.equal_settings().recorded()),
        ..ClaimOptions::default()
    }
}
