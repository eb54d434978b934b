use std::{
    collections::HashSet,
    sync::{Arc, Mutex, PoisonError},
};

use grid_batch_core::{Ledger, ServiceId};
use log::warn;

/// Tells which services the ledger can have, and logs each that it cannot have once.
pub(super) struct RefusedServices {
    ledger: Arc<dyn Ledger>,
    logged: Mutex<HashSet<ServiceId>>,
}

impl RefusedServices {
    /// More are not logged, so that the memory has a bound.
    const MOST_LOGGED: usize = 1_000;

    pub(super) fn new(ledger: Arc<dyn Ledger>) -> Self {
        Self { ledger, logged: Mutex::default() }
    }

    pub(super) fn accepts(&self, service: &ServiceId) -> bool {
        let Err(error) = self.ledger.check_service_id(service) else { return true };
        let mut logged = self.logged.lock().unwrap_or_else(PoisonError::into_inner);
        if logged.len() < Self::MOST_LOGGED && logged.insert(service.clone()) {
            warn!(service:%, error:%;
                "the ledger cannot have this service; its batches are neither submitted nor followed");
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use grid_batch_core::{GlobalScopeId, ScopeId, ScopeIdError};

    use super::*;

    /// A ledger without services.
    struct Global;

    impl Ledger for Global {
        grid_batch_core::unused_ledger_methods!();

        fn check_service_id(&self, service_id: &ServiceId) -> Result<(), ScopeIdError> {
            GlobalScopeId::from_service_id(service_id).map(drop)
        }
    }

    #[test]
    fn services_that_the_ledger_cannot_have_are_refused() {
        let [global, named] = ["global", "a::b"].map(|id| id.parse::<ServiceId>().unwrap());
        let services = RefusedServices::new(Arc::new(Global));
        assert!(services.accepts(&global) && !services.accepts(&named));
        assert!(!services.accepts(&named));
        assert_eq!(services.logged.lock().unwrap().len(), 1);
    }
}
