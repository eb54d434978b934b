//! Limits on adding batches that miss transactions or contain missing ones.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use grid_batch_core::batches::{BatchConflict, NewBatch, SignerId};
use grid_batch_core::{Clock, ItemId, ServiceId};

use super::table::{count_of_signers, find_waited_for};
use crate::{
    scheduling::{count_incomplete_of_services, find_missing_of_new},
    sql::{Connection, Store, StoreError, intake_limits::IntakeLimits, open_counts::OpenCount},
};

/// A batch that others wait for may be stored up to this multiple of a limit, because the others cannot end before it.
/// It is still limited, because a client could invent batches that wait for each other.
const MORE_IF_WAITED_FOR: u64 = 2;

/// The limit for a batch, which is higher if others wait for it.
pub(crate) fn limit_of(limit: u64, is_waited_for: bool) -> u64 {
    if is_waited_for { limit.saturating_mul(MORE_IF_WAITED_FOR) } else { limit }
}

/// The transactions of new batches that stored batches miss.
#[derive(Debug, Default)]
pub(crate) struct WaitedFor(BTreeSet<ItemId>);

impl WaitedFor {
    pub(crate) fn read(
        store: &Store,
        connection: &mut Connection,
        batches: &[&NewBatch],
    ) -> Result<Self, StoreError> {
        if !store.scheduler.keeps_positions() {
            return Ok(Self::default());
        }
        let ids = batches.iter().flat_map(|batch| &batch.transaction_ids).copied().collect();
        Ok(Self(find_waited_for(connection, &ids)?))
    }

    /// Whether stored batches miss a transaction of this one.
    pub(crate) fn contains(&self, batch: &NewBatch) -> bool {
        batch.transaction_ids.iter().any(|id| self.0.contains(id))
    }
}

/// How many batches that miss transactions may be added. They may wait for long, so no signer may fill a queue with
/// them, and all of them together must leave room for batches that can be sent. Concurrent database transactions do not
/// see each other's batches, so the limits may be exceeded by these.
pub(crate) struct MissingCapacity<'a> {
    store: &'a Store,
    limits: IntakeLimits,
    /// The missing transactions of the batches of each signer.
    signers: BTreeMap<SignerId, OpenCount>,
    /// The batches of each service that miss transactions.
    services: BTreeMap<ServiceId, OpenCount>,
    /// The transactions that each new batch misses and that no other new batch contains.
    missing: HashMap<(&'a str, ItemId), Vec<ItemId>>,
    /// The transactions of new batches that miss nothing and will be stored.
    arriving: HashSet<ItemId>,
}

impl<'a> MissingCapacity<'a> {
    /// Reads what the new batches miss, and counts what their signers and services miss already.
    pub(crate) fn read(
        store: &'a Store,
        connection: &mut Connection,
        batches: &[&'a NewBatch],
    ) -> Result<Self, StoreError> {
        let limits = store.intake_limits;
        let (of_signer, of_service) =
            (limits.missing_transactions_of_signer, limits.incomplete_batches);
        let is_limited = of_signer != u64::MAX || of_service != u64::MAX;
        let missing = if is_limited && store.scheduler.keeps_positions() {
            find_missing_of_new(connection, batches)?
        } else {
            HashMap::new()
        };
        let missing: HashMap<(&'a str, ItemId), Vec<ItemId>> = missing
            .into_iter()
            .filter_map(|(number, missing)| Some((key(batches.get(number)?), missing)))
            .collect();
        let mut signers: BTreeMap<SignerId, u64> = BTreeMap::new();
        let mut services: BTreeMap<ServiceId, u64> = BTreeMap::new();
        for batch in batches {
            let Some(missing) = missing.get(&key(batch)) else { continue };
            *services.entry(batch.service_id.clone()).or_default() += 1;
            if let Some(signer) = batch.signer {
                *signers.entry(signer).or_default() += missing.len() as u64;
            }
        }
        let now = store.clock().monotonic();
        let signers = store
            .missing_of_signers
            .read(signers, of_signer, now, |to_count| count_of_signers(connection, to_count))?;
        let services =
            store.incomplete_of_services.read(services, of_service, now, |to_count| {
                count_incomplete_of_services(connection, to_count)
            })?;
        Ok(Self { store, limits, signers, services, missing, arriving: HashSet::new() })
    }

    /// Whether a signer may reach its limit.
    pub(crate) fn may_be_full(&self) -> bool {
        let new = self.missing.values().map(|missing| missing.len() as u64).sum::<u64>();
        let limit = self.limits.missing_transactions_of_signer;
        self.signers.values().any(|it| it.present().saturating_add(new) > limit)
    }

    /// Counts a batch that will be stored, if the limits allow it. The first batch of a signer may miss any number of
    /// transactions.
    pub(crate) fn take(
        &mut self,
        batch: &'a NewBatch,
        is_waited_for: bool,
    ) -> Result<(), BatchConflict> {
        let missing = self.missing_of(batch);
        if missing == 0 {
            self.arriving.extend(&batch.transaction_ids);
            return Ok(());
        }
        self.check_service(batch)?;
        let limit = self.limits.missing_transactions_of_signer;
        if let Some(of_signer) = batch.signer.and_then(|signer| self.signers.get_mut(&signer)) {
            let present = of_signer.present();
            let signer = batch.signer.map(Box::new);
            if let Some(signer) = signer
                && present > 0
                && present.saturating_add(missing) > limit_of(limit, is_waited_for)
            {
                return Err(BatchConflict::TooManyMissing { signer, missing: present, limit });
            }
            of_signer.added += missing;
        }
        if let Some(of_service) = self.services.get_mut(&batch.service_id) {
            of_service.added += 1;
        }
        Ok(())
    }

    /// Other batches may wait for such a batch; it is accepted when its own missing transactions have arrived.
    fn check_service(&self, batch: &NewBatch) -> Result<(), BatchConflict> {
        let limit = self.limits.incomplete_batches;
        let incomplete = self.services.get(&batch.service_id).map_or(0, OpenCount::present);
        if incomplete >= limit {
            let service_id = batch.service_id.clone();
            return Err(BatchConflict::TooManyIncomplete { service_id, incomplete, limit });
        }
        Ok(())
    }

    /// Reverts what [`take`](Self::take) counted for the latest batch.
    pub(crate) fn give_back(&mut self, batch: &'a NewBatch) {
        let missing = self.missing_of(batch);
        if missing == 0 {
            batch.transaction_ids.iter().for_each(|id| {
                self.arriving.remove(id);
            });
            return;
        }
        if let Some(of_signer) = batch.signer.and_then(|signer| self.signers.get_mut(&signer)) {
            of_signer.added = of_signer.added.saturating_sub(missing);
        }
        if let Some(of_service) = self.services.get_mut(&batch.service_id) {
            of_service.added = of_service.added.saturating_sub(1);
        }
    }

    /// Remembers what was added.
    pub(crate) fn keep(self) {
        self.store.missing_of_signers.keep(&self.signers);
        self.store.incomplete_of_services.keep(&self.services);
    }

    fn missing_of(&self, batch: &'a NewBatch) -> u64 {
        let missing = self.missing.get(&key(batch)).map_or(&[][..], Vec::as_slice);
        missing.iter().filter(|id| !self.arriving.contains(id)).count() as u64
    }
}

fn key(batch: &NewBatch) -> (&str, ItemId) {
    (batch.service_id.as_str(), batch.batch_id)
}
