use std::{collections::HashSet, mem::take, slice};

use grid_batch_core::evidence::{Resolution, UnresolvedBatch};
use grid_batch_core::polling::{BatchId, BatchStatus};
use grid_batch_core::{BatchError, BatchResult, ServiceId};
use log::error;

use crate::{MonitorCounters, poller_store::PollerStore, stats::to_u64};

/// Writes that wait for the store and are made together.
///
/// They are kept while the store is unavailable. Their number is bounded, because the monitor reads no more due batches
/// meanwhile. Writes for a service that another transaction keeps locked are dropped, so that other services do not
/// wait for it; the ledger is asked again when the service is due.
#[derive(Debug)]
pub(crate) struct PendingWrites<I, T> {
    /// Statuses by service.
    groups: Vec<(String, Vec<T>)>,
    /// The batches of each group.
    group_batches: Vec<Vec<I>>,
    checked: Vec<I>,
    resolutions: Vec<(UnresolvedBatch, Resolution)>,
}

impl<I: BatchId, T: BatchStatus> PendingWrites<I, T> {
    pub(crate) fn new() -> Self {
        Self {
            groups: Vec::new(),
            group_batches: Vec::new(),
            checked: Vec::new(),
            resolutions: Vec::new(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.groups.is_empty() && self.checked.is_empty() && self.resolutions.is_empty()
    }

    /// The number of services and batches with writes.
    pub(crate) fn len(&self) -> usize {
        self.groups.len() + self.checked.len() + self.resolutions.len()
    }

    /// The services with results.
    pub(crate) fn services(&self) -> HashSet<&str> {
        let with_statuses = self.groups.iter().map(|(service_id, _)| service_id.as_str());
        let checked = self.checked.iter().map(BatchId::get_service_id);
        let resolved = self.resolutions.iter().map(|(batch, _)| batch.service_id.as_str());
        with_statuses.chain(checked).chain(resolved).collect()
    }

    /// Adds the reported statuses of these batches of one service.
    pub(crate) fn add_statuses(&mut self, service_id: String, batches: Vec<I>, statuses: Vec<T>) {
        if !statuses.is_empty() {
            self.groups.push((service_id, statuses));
            self.group_batches.push(batches);
        }
    }

    /// Adds batches for which the ledger was asked but reported no status.
    pub(crate) fn add_checked(&mut self, batches: impl IntoIterator<Item = I>) {
        self.checked.extend(batches);
    }

    pub(crate) fn add_resolution(&mut self, batch: UnresolvedBatch, resolution: Resolution) {
        self.resolutions.push((batch, resolution));
    }

    /// Makes all writes. After an error, those that were not made are kept.
    pub(crate) fn write(&mut self, store: &mut PollerStore<I, T>) -> BatchResult<()> {
        self.write_groups(store)?;
        self.write_checked(store)?;
        self.write_resolutions(store)
    }

    fn write_groups(&mut self, store: &mut PollerStore<I, T>) -> BatchResult<()> {
        if self.groups.is_empty() {
            return Ok(());
        }
        match store.update_groups(&self.groups) {
            Ok(()) => self.remove_written_groups(&store.counters),
            Err(BatchError::Locked(services)) => {
                self.groups.retain(|(service_id, _)| !is_one_of(&services, service_id));
                self.remove_written_groups(&store.counters);
            }
            Err(error @ BatchError::Unavailable(_)) => return Err(error),
            // A group that the store refuses must not block the others.
            Err(_) => self.write_each_group(store)?,
        }
        Ok(())
    }

    fn remove_written_groups(&mut self, counters: &MonitorCounters) {
        self.group_batches.clear();
        let written = self.groups.drain(..).map(|(_, statuses)| statuses.len()).sum();
        counters.count(|stats| stats.written += to_u64(written));
    }

    fn write_each_group(&mut self, store: &mut PollerStore<I, T>) -> BatchResult<()> {
        while let (Some((service_id, statuses)), Some(batches)) =
            (self.groups.first(), self.group_batches.first_mut())
        {
            match store.update(service_id, statuses) {
                Ok(()) => store.counters.count(|stats| stats.written += to_u64(statuses.len())),
                Err(BatchError::Locked(_)) => {}
                Err(error @ BatchError::Unavailable(_)) => return Err(error),
                Err(error) => {
                    store.counters.count(|stats| stats.refused += 1);
                    error!(
                        service = service_id.as_str(), statuses = statuses.len(), error:% = error;
                        "the store refused statuses; the ledger is asked for them again later"
                    );
                    self.checked.append(batches);
                }
            }
            self.groups.remove(0);
            self.group_batches.remove(0);
        }
        Ok(())
    }

    fn write_checked(&mut self, store: &PollerStore<I, T>) -> BatchResult<()> {
        if self.checked.is_empty() {
            return Ok(());
        }
        let result = match store.mark_checked(&self.checked) {
            Err(BatchError::Locked(_)) => Ok(()),
            result => result,
        };
        if !matches!(result, Err(BatchError::Unavailable(_))) {
            self.checked.clear();
        }
        result
    }

    fn write_resolutions(&mut self, store: &PollerStore<I, T>) -> BatchResult<()> {
        if self.resolutions.is_empty() {
            return Ok(());
        }
        match store.resolve(&self.resolutions) {
            Ok(()) | Err(BatchError::Locked(_)) => self.resolutions.clear(),
            Err(error @ BatchError::Unavailable(_)) => return Err(error),
            Err(_) => self.write_each_resolution(store)?,
        }
        Ok(())
    }

    fn write_each_resolution(&mut self, store: &PollerStore<I, T>) -> BatchResult<()> {
        while let Some(resolution) = self.resolutions.first() {
            match store.resolve(slice::from_ref(resolution)) {
                Ok(()) | Err(BatchError::Locked(_)) => {}
                Err(error @ BatchError::Unavailable(_)) => return Err(error),
                Err(error) => {
                    store.counters.count(|stats| stats.refused += 1);
                    let UnresolvedBatch { service_id, batch_id, .. } = &resolution.0;
                    error!(
                        service:% = service_id, batch_id:% = batch_id, error:% = error;
                        "the store refused a resolution; evidence is searched again later"
                    );
                }
            }
            self.resolutions.remove(0);
        }
        Ok(())
    }

    /// Discards the statuses and resolutions that could not be written, and returns their number.
    pub(crate) fn discard(&mut self) -> usize {
        let statuses = take(&mut self.groups).into_iter().map(|(_, statuses)| statuses.len());
        statuses.sum::<usize>() + take(&mut self.resolutions).len()
    }
}

fn is_one_of(services: &[ServiceId], service_id: &str) -> bool {
    services.iter().any(|service| service.as_str() == service_id)
}
