//! The instance among others on the database.

use std::{thread, time::Duration};

use grid_batch_core::{InstanceId, Timestamp};
use grid_batch_store::{ClaimError, ClaimOptions, ClaimStore, Store, StoreError};
use log::info;

/// Registers the instance. Where another run has its name, it waits until that one either shows
/// that it lives, which is an error, or lets its first expiry pass: after a crash, the program comes
/// back by itself.
pub(super) fn register(store: &Store, options: &ClaimOptions) -> Result<ClaimStore, StoreError> {
    const LOOK_EVERY: Duration = Duration::from_millis(100);
    let mut earlier: Option<(InstanceId, Timestamp)> = None;
    loop {
        let error = match ClaimStore::register(store.clone(), options.clone()) {
            Err(StoreError::Claims(error)) => error,
            registered => return registered,
        };
        let ClaimError::NameInUse { name, holder, until } = &error else {
            return Err(error.into());
        };
        let found = (holder.clone(), *until);
        match &earlier {
            Some(earlier) if *earlier != found => return Err(error.into()),
            Some(_) => {}
            None => {
                info!(name = name.as_str(), run:% = holder;
                    "an earlier run has the name; waiting for it to show that it lives, or to expire");
                earlier = Some(found);
            }
        }
        thread::sleep(LOOK_EVERY);
    }
}
