use std::collections::HashMap;

use grid_batch_core::{HeaderId, Round, ServiceId};

/// The batches of a round, by service.
#[derive(Debug, Default)]
pub(crate) struct TakenOfServices(HashMap<ServiceId, Vec<HeaderId>>);

impl TakenOfServices {
    /// The batches of this round; none if there is no round.
    pub(crate) fn new(round: Option<&Round>) -> Self {
        let mut services = HashMap::<ServiceId, Vec<HeaderId>>::new();
        for taken in round.into_iter().flat_map(|round| &round.batches) {
            services.entry(taken.service_id.clone()).or_default().push(taken.batch_id);
        }
        Self(services)
    }

    /// The batches of this service.
    pub(crate) fn of(&self, service_id: &ServiceId) -> &[HeaderId] {
        self.0.get(service_id).map_or(&[], Vec::as_slice)
    }

    /// The services of which at least so many batches were taken.
    pub(crate) fn services_with(&self, batches: usize) -> Vec<ServiceId> {
        let of_services = self.0.iter().filter(|(_, taken)| taken.len() >= batches);
        of_services.map(|(service_id, _)| service_id.clone()).collect()
    }
}
