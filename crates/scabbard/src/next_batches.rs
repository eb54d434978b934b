//! The next batches of services with a batch under way.

use std::{mem::take, sync::Mutex};

use grid_batch_core::batches::StatusReport;
use grid_batch_core::polling::BatchStatus;
use grid_batch_core::{ItemId, ServiceId};
use grid_batch_support::{BoundedMap, lock};

use crate::batch_history::BatchKey;

/// The batches about which the next status request of their service asks as well.
///
/// A service with a batch under way is asked for its status anyway, shortly before the next batch is sent.
pub(crate) struct NextBatches(Mutex<BoundedMap<ServiceId, NextOfService>>);

#[derive(Default)]
struct NextOfService {
    /// The batch that a node has accepted last, until its final status is known.
    under_way: Option<ItemId>,
    not_asked: Vec<ItemId>,
}

impl NextBatches {
    /// Limit on the number of services. Those of others are asked about in requests of their own.
    const LIMIT: usize = 10_000;

    pub(crate) fn new() -> Self {
        Self(Mutex::new(BoundedMap::new(Self::LIMIT)))
    }

    /// Records that a node has accepted a batch.
    pub(crate) fn accepted(&self, batch: &BatchKey) {
        let (service, batch_id) = batch;
        let mut services = lock(&self.0);
        let next = services.get_or_insert_with(service, NextOfService::default);
        next.under_way = Some(*batch_id);
    }

    /// Sets the batches that the next status request of the service asks about. Returns `false` if none is expected.
    pub(crate) fn set(&self, service: &ServiceId, batches: &[ItemId]) -> bool {
        let mut services = lock(&self.0);
        let next = services.get_mut(service).filter(|next| next.under_way.is_some());
        let Some(next) = next else { return false };
        next.not_asked = batches.to_vec();
        true
    }

    /// Takes the batches to ask about in a request that starts now.
    pub(crate) fn take(&self, service: &ServiceId) -> Vec<ItemId> {
        lock(&self.0).get_mut(service).map(|next| take(&mut next.not_asked)).unwrap_or_default()
    }

    /// Records reported statuses.
    pub(crate) fn reported(&self, service: &ServiceId, reports: &[StatusReport]) {
        let mut services = lock(&self.0);
        let Some(next) = services.get_mut(service) else { return };
        let Some(under_way) = next.under_way.map(|id| id.to_string()) else { return };
        if reports.iter().any(|report| report.batch_id == under_way && report.is_final()) {
            next.under_way = None;
        }
    }
}
