use std::collections::HashMap;

use grid_batch_core::{Round, ServiceId, TakenBatch};

/// The batches of a round, by service.
#[derive(Debug, Default)]
pub(crate) struct TakenOfServices<'a>(HashMap<&'a ServiceId, Vec<&'a TakenBatch>>);

impl<'a> TakenOfServices<'a> {
    /// The batches of this round; none if there is no round.
    pub(crate) fn new(round: Option<&'a Round>) -> Self {
        let mut services = HashMap::<&ServiceId, Vec<&TakenBatch>>::new();
        for taken in round.into_iter().flat_map(|round| &round.batches) {
            services.entry(&taken.service_id).or_default().push(taken);
        }
        Self(services)
    }

    /// The batches of this service.
    pub(crate) fn of(&self, service_id: &ServiceId) -> &[&TakenBatch] {
        self.0.get(service_id).map_or(&[], Vec::as_slice)
    }

    /// The services of which at least so many batches were taken.
    pub(crate) fn services_with(&self, batches: usize) -> Vec<ServiceId> {
        let of_services = self.0.iter().filter(|(_, taken)| taken.len() >= batches);
        of_services.map(|(service_id, _)| ServiceId::clone(service_id)).collect()
    }
}
