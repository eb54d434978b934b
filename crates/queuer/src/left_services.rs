use std::collections::{HashSet, VecDeque};

use grid_batch_core::ServiceId;

/// The services whose batches did not fit into a round, in the order in which they were left, each once.
///
/// The first one is offered first in each round, so that a large batch is taken in the end.
#[derive(Debug, Default)]
pub(crate) struct LeftServices {
    order: VecDeque<ServiceId>,
    set: HashSet<ServiceId>,
}

impl LeftServices {
    /// Takes up to `limit` services.
    pub(crate) fn take(&mut self, limit: usize) -> Vec<ServiceId> {
        let services: Vec<ServiceId> = self.order.drain(..limit.min(self.order.len())).collect();
        for service in &services {
            self.set.remove(service);
        }
        services
    }

    /// Puts services back to the front, in their order.
    pub(crate) fn put_back(&mut self, services: Vec<ServiceId>) {
        for service in services.into_iter().rev() {
            if self.set.insert(service.clone()) {
                self.order.push_front(service);
            }
        }
    }

    /// Adds services at the end.
    pub(crate) fn add(&mut self, services: Vec<ServiceId>) {
        for service in services {
            if self.set.insert(service.clone()) {
                self.order.push_back(service);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn services(names: &[&str]) -> Vec<ServiceId> {
        names.iter().map(|name| name.parse().unwrap()).collect()
    }

    #[test]
    fn services_keep_their_order() {
        let mut left = LeftServices::default();
        left.add(services(&["a", "b", "c"]));
        assert_eq!(left.take(2), services(&["a", "b"]));
        left.put_back(services(&["a", "b"]));
        left.add(services(&["b", "d"]));
        assert_eq!(left.take(9), services(&["a", "b", "c", "d"]));
    }
}
