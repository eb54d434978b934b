use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use grid_batch_core::ServiceId;
use grid_batch_core::batches::BatchState;
use grid_batch_core::events::{Recorded, RecordedSubscriber};
use grid_batch_support::lock;
use log::{info, warn};

/// Knows the services whose batches all end as invalid: the program that makes them is probably wrong. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct InvalidServices(Arc<Mutex<HashMap<ServiceId, u64>>>);

impl InvalidServices {
    /// So many batches of a service in a row have ended as invalid.
    const MOST: u64 = 10;
    /// Limit on the number of services that are watched.
    const CAPACITY: usize = 100_000;

    /// How many there are.
    pub fn count(&self) -> u64 {
        let services = lock(&self.0);
        let count = services.values().filter(|invalid| **invalid >= Self::MOST).count();
        u64::try_from(count).unwrap_or(u64::MAX)
    }

    fn committed(&self, service: &ServiceId) {
        if lock(&self.0).remove(service).is_some_and(|invalid| invalid >= Self::MOST) {
            info!(service:%; "a batch of the service was committed, after all before it had ended as invalid");
        }
    }

    fn invalid(&self, service: &ServiceId) {
        let mut services = lock(&self.0);
        if services.len() >= Self::CAPACITY && !services.contains_key(service) {
            return;
        }
        let count = services.entry(service.clone()).or_default();
        *count += 1;
        if *count == Self::MOST {
            warn!(service:%, batches = Self::MOST;
                "the last batches of the service have all ended as invalid; `grid-batch list` has the reasons");
        }
    }
}

impl RecordedSubscriber for InvalidServices {
    fn recorded(&self, entry: Recorded<'_>) {
        match entry {
            Recorded::Change { change, state: BatchState::Committed, .. } => {
                self.committed(&change.service_id);
            }
            Recorded::Change { change, state: BatchState::Invalid, .. } => {
                self.invalid(&change.service_id);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use grid_batch_core::ItemId;
    use grid_batch_core::batches::{Change, Event, LedgerStatus};

    use super::*;

    fn end(services: &InvalidServices, name: &str, state: BatchState) {
        let status = match state {
            BatchState::Committed => LedgerStatus::Committed,
            _ => LedgerStatus::Invalid,
        };
        let id = ItemId::from_bytes([1; 64]);
        let change = &Change::new(name.parse().unwrap(), id, Event::status(status));
        services.recorded(Recorded::Change { change, state, next_waits: false });
    }

    #[test]
    fn service_counts_until_one_of_its_batches_is_committed() {
        let services = InvalidServices::default();
        for _ in 1..InvalidServices::MOST {
            end(&services, "a::b", BatchState::Invalid);
            end(&services, "c::d", BatchState::Invalid);
        }
        assert_eq!(services.count(), 0);
        end(&services, "a::b", BatchState::Invalid);
        end(&services, "c::d", BatchState::Committed);
        end(&services, "c::d", BatchState::Invalid);
        assert_eq!(services.count(), 1);
        end(&services, "a::b", BatchState::Committed);
        assert_eq!(services.count(), 0);
    }
}
