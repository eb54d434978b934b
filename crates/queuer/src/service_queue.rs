use std::collections::{HashSet, VecDeque};

use grid_batch_core::ServiceId;

/// An ordered queue of services without duplicates.
#[derive(Debug, Default)]
pub(crate) struct ServiceQueue {
    order: VecDeque<ServiceId>,
    set: HashSet<ServiceId>,
}

impl ServiceQueue {
    pub(crate) fn len(&self) -> usize {
        self.order.len()
    }

    /// Takes up to `limit` services.
    pub(crate) fn take(&mut self, limit: usize) -> Vec<ServiceId> {
        let services: Vec<ServiceId> = self.order.drain(..limit.min(self.order.len())).collect();
        for service in &services {
            self.set.remove(service);
        }
        services
    }

    /// Adds services at the front, in their order.
    pub(crate) fn put_back(&mut self, services: Vec<ServiceId>) {
        for service in services.into_iter().rev() {
            if self.set.insert(service.clone()) {
                self.order.push_front(service);
            }
        }
    }
}

/// Adds services at the end.
impl Extend<ServiceId> for ServiceQueue {
    fn extend<I: IntoIterator<Item = ServiceId>>(&mut self, services: I) {
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
        let mut queue = ServiceQueue::default();
        queue.extend(services(&["a", "b", "c"]));
        assert_eq!(queue.take(2), services(&["a", "b"]));
        queue.put_back(services(&["a", "b"]));
        queue.extend(services(&["b", "d"]));
        assert_eq!(queue.take(9), services(&["a", "b", "c", "d"]));
    }
}
