use std::{
    collections::HashSet,
    sync::{Mutex, PoisonError},
};

use grid_batch_core::ServiceId;

/// The services with a condition that is logged once until it ends.
#[derive(Debug, Default)]
pub(crate) struct LoggedServices(Mutex<HashSet<ServiceId>>);

impl LoggedServices {
    /// How many services are remembered. Beyond that, all are forgotten and logged once more.
    const CAPACITY: usize = 1_000;

    /// Records whether the condition holds. `true`: it begins, and is to be logged.
    pub(crate) fn begins(&self, service_id: &ServiceId, holds: bool) -> bool {
        let mut services = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !holds {
            services.remove(service_id);
            return false;
        }
        if services.len() >= Self::CAPACITY && !services.contains(service_id) {
            services.clear();
        }
        services.insert(service_id.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn condition_is_logged_once_until_it_ends() {
        let logged = LoggedServices::default();
        let service: ServiceId = "account".parse().unwrap();
        let begins = |holds| logged.begins(&service, holds);
        assert_eq!([begins(true), begins(true), begins(false)], [true, false, false]);
        assert!(begins(true));
    }

    #[test]
    fn number_of_remembered_services_is_limited() {
        let logged = LoggedServices::default();
        for number in 0..=LoggedServices::CAPACITY {
            logged.begins(&format!("account-{number}").parse().unwrap(), true);
            assert!(logged.0.lock().unwrap().len() <= LoggedServices::CAPACITY);
        }
    }
}
