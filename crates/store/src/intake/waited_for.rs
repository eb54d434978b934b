use std::collections::BTreeSet;

use grid_batch_core::{ItemId, NewBatch};

use crate::{
    scheduling::find_waited_for,
    sql::{Connection, Store, StoreError},
};

/// A batch that others wait for may be stored up to this multiple of a limit, because the others cannot end before. It
/// has a limit, too, because a client could make up batches that wait for each other.
const MORE_IF_WAITED_FOR: u64 = 2;

/// The limit for a batch, which is higher if others wait for it.
pub(super) fn limit_of(limit: u64, is_waited_for: bool) -> u64 {
    if is_waited_for { limit.saturating_mul(MORE_IF_WAITED_FOR) } else { limit }
}

/// The transactions of new batches that stored batches miss.
#[derive(Debug, Default)]
pub(super) struct WaitedFor(BTreeSet<ItemId>);

impl WaitedFor {
    pub(super) fn read(
        store: &Store,
        connection: &mut Connection,
        batches: &[&NewBatch],
    ) -> Result<Self, StoreError> {
        if !store.scheduler.is_used() {
            return Ok(Self::default());
        }
        let ids = batches.iter().flat_map(|batch| &batch.transaction_ids).copied().collect();
        Ok(Self(find_waited_for(connection, &ids)?))
    }

    /// Whether stored batches miss a transaction of this one.
    pub(super) fn contains(&self, batch: &NewBatch) -> bool {
        batch.transaction_ids.iter().any(|id| self.0.contains(id))
    }
}
