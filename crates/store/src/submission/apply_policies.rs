//! Applies the policies of services to invalid batches that commands ended. A command may not have the
//! settings of the server.

use std::collections::BTreeSet;

use grid_batch_core::{AfterInvalid, ServiceId};

use super::{FreedDependents, finish_halts::go_on};
use crate::{
    batch::lock_services,
    scheduling::{
        find_without_policy, next_service_without_policy, remove_halts, set_policy_applied,
    },
    sql::{Store, StoreError, groups::LOCK_LIMIT},
};

/// The number of invalid batches that one commit looks at.
const STEP: usize = 256;

/// Does a step for each service. A service that stays locked is left for the next time.
pub(super) fn apply_policies(store: &Store, freed: &mut FreedDependents) -> Result<(), StoreError> {
    let mut after = String::new();
    loop {
        let positioned = store.scheduler.is_used();
        let next = next_service_without_policy(&mut *store.pools.read()?, &after, positioned)?;
        let Some(service_id) = next else { return Ok(()) };
        if let Some(policy) = store.scheduler.policy(&service_id) {
            match apply_policy(store, &service_id, policy, &mut freed.ready) {
                Ok(more) => freed.more |= more,
                Err(StoreError::Locked { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        after = service_id.to_string();
    }
}

/// Does a step for one service. Returns whether there may be more to do.
fn apply_policy(
    store: &Store,
    service_id: &ServiceId,
    policy: AfterInvalid,
    ready: &mut BTreeSet<ServiceId>,
) -> Result<bool, StoreError> {
    store.pools.write()?.transaction_with_lock_limit(LOCK_LIMIT, |connection| {
        lock_services(connection, [service_id])?;
        let invalid = find_without_policy(connection, service_id, STEP)?;
        let seqs = invalid.iter().map(|batch| batch.0);
        let over = match policy {
            AfterInvalid::Halt => {
                set_policy_applied(connection, seqs)?;
                &[][..]
            }
            AfterInvalid::Continue => {
                remove_halts(connection, seqs)?;
                &invalid
            }
        };
        // Lanes are filled in any case: the commands could not.
        ready.extend(go_on(store, connection, service_id, over)?);
        Ok(invalid.len() == STEP)
    })
}
