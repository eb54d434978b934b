use std::{
    collections::HashSet,
    marker::PhantomData,
    sync::{Mutex, PoisonError},
};

use grid_batch_core::{BatchError, BatchResult, ScopeId, ServiceId};
use log::warn;

/// An error if the ledger cannot have this service, so that its nodes are not asked about it.
pub(super) fn check_scope<S: ScopeId>(service_id: &str) -> BatchResult<()> {
    let service: Result<ServiceId, _> = service_id.parse();
    let scope = service.map_err(|error| error.to_string()).and_then(|service| {
        S::from_service_id(&service).map(drop).map_err(|error| error.to_string())
    });
    scope.map_err(|error| {
        BatchError::InternalError(format!("the ledger is not asked about this service: {error}"))
    })
}

/// Tells which services the ledger can have, and logs each that it cannot have once.
#[derive(Debug)]
pub(super) struct RefusedServices<S> {
    logged: Mutex<HashSet<ServiceId>>,
    scope: PhantomData<fn() -> S>,
}

impl<S: ScopeId> RefusedServices<S> {
    /// More are not logged, so that the memory has a bound.
    const MOST_LOGGED: usize = 1_000;

    pub(super) fn new() -> Self {
        Self { logged: Mutex::default(), scope: PhantomData }
    }

    pub(super) fn accepts(&self, service: &ServiceId) -> bool {
        let Err(error) = S::from_service_id(service) else { return true };
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
    use grid_batch_core::{GlobalScopeId, ServiceScopeId};

    use super::*;

    #[test]
    fn services_of_another_kind_are_refused() {
        let [global, named] = ["global", "a::b"].map(|id| id.parse::<ServiceId>().unwrap());
        let sawtooth = RefusedServices::<GlobalScopeId>::new();
        assert!(sawtooth.accepts(&global) && !sawtooth.accepts(&named));
        let scabbard = RefusedServices::<ServiceScopeId>::new();
        assert!(!scabbard.accepts(&global) && scabbard.accepts(&named));
        assert!(!scabbard.accepts(&global));
        assert_eq!(scabbard.logged.lock().unwrap().len(), 1);
        assert!(check_scope::<GlobalScopeId>("global").is_ok());
        assert!(check_scope::<GlobalScopeId>("a::b").is_err());
    }
}
