//! Registers this process as an instance on the database.

use std::{thread, time::Duration};

use grid_batch_core::{InstanceId, Ledger, Timestamp};
use grid_batch_store::{ClaimError, ClaimOptions, ClaimStore, Store, StoreError};
use log::info;

/// Registers the instance for the services that this ledger can have.
///
/// If the lease of an instance with the same name has not expired, this waits: until the other
/// instance renews it, which is an error, or until its idle expiry. So a server that crashed can
/// be restarted at once.
pub(super) fn register(
    store: &Store,
    ledger: &dyn Ledger,
    options: &ClaimOptions,
) -> Result<ClaimStore, StoreError> {
    const RETRY_INTERVAL: Duration = Duration::from_millis(100);
    let mut other_lease: Option<(InstanceId, Timestamp)> = None;
    loop {
        let registered = ClaimStore::register_for(store.clone(), options.clone(), |service| {
            ledger.check_service_id(service).is_ok()
        });
        let error = match registered {
            Err(StoreError::Claims(error)) => error,
            result => return result,
        };
        let ClaimError::NameInUse { name, holder, until } = &error else {
            return Err(error.into());
        };
        let lease = (holder.clone(), *until);
        match &other_lease {
            Some(first) if *first != lease => return Err(error.into()),
            Some(_) => {}
            None => {
                info!(name = name.as_str(), instance:% = holder;
                    "an instance with this name has a lease; waiting for its expiry or renewal");
                other_lease = Some(lease);
            }
        }
        thread::sleep(RETRY_INTERVAL);
    }
}
