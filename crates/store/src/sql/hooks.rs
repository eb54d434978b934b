use std::{
    collections::{BTreeSet, HashMap},
    fmt,
};

use grid_batch_core::batches::BatchState;
use grid_batch_core::events::EventWithdrawal;
use grid_batch_core::operators::{ActionOutcome, ActionRefusal, OperatorAction};
use grid_batch_core::queue::Ahead;
use grid_batch_core::{ItemId, ServiceId, Timestamp};

use super::{Connection, Store, StoreError};

/// A batch that has just ended.
pub(crate) struct EndedBatch {
    pub(crate) seq: i64,
    pub(crate) id: ItemId,
    pub(crate) state: BatchState,
}

/// Hooks by which a module above batches acts in the same transaction when something happens to them.
///
/// By default, a method does nothing and costs nothing.
pub(crate) trait BatchHooks: fmt::Debug + Send + Sync {
    /// Called when batches have ended, while they are still in their lanes.
    fn ended(
        &self,
        _connection: &mut Connection,
        _ended: &[EndedBatch],
        _now: Timestamp,
    ) -> Result<(), StoreError> {
        Ok(())
    }

    /// The batches that follow one which has just ended, in the order of its service, and were sent before their turns
    /// and are committed: their numbers and ids, up to the first that is not so, is held, or may have been sent in the
    /// time that a restored database has lost.
    fn committed_ahead(
        &self,
        _connection: &mut Connection,
        _service_id: &ServiceId,
        _ended: &ItemId,
        _ended_seq: i64,
    ) -> Result<Vec<(i64, ItemId)>, StoreError> {
        Ok(Vec::new())
    }

    /// Installs the next batches of locked services in which batches of different pools overtake each other.
    /// Returns those that were stored before the database was restored.
    fn fill_by_pool(
        &self,
        _connection: &mut Connection,
        _services: &BTreeSet<ServiceId>,
        _now: Timestamp,
    ) -> Result<BTreeSet<(ServiceId, ItemId)>, StoreError> {
        Ok(BTreeSet::new())
    }

    /// Those of these batches, which are in lanes by pool, that no other batch of their services overtakes.
    fn not_overtaken(
        &self,
        _connection: &mut Connection,
        _batch_seqs: &[i64],
    ) -> Result<BTreeSet<i64>, StoreError> {
        Ok(BTreeSet::new())
    }

    /// What is ahead of the open batches of a service that were stored at these times. `None`: they wait in one
    /// order.
    fn ahead(
        &self,
        _connection: &mut Connection,
        _service_id: &ServiceId,
        _created_at: &[Timestamp],
    ) -> Result<Option<Vec<Option<Ahead>>>, StoreError> {
        Ok(None)
    }

    /// Whether a batch belongs to a withdrawal, which determines how the batch ends unless it is held.
    fn is_of_withdrawal(
        &self,
        _connection: &mut Connection,
        _batch_seq: i64,
    ) -> Result<bool, StoreError> {
        Ok(false)
    }

    /// Does an operator's action on the nonces of an account.
    fn act_on_nonces(
        &self,
        _store: &Store,
        _connection: &mut Connection,
        action: &OperatorAction,
    ) -> Result<ActionOutcome, StoreError> {
        Ok(ActionOutcome::Refused(ActionRefusal::WrongTarget { verb: action.verb }))
    }

    /// Additional details for the events of these batches, by the ids of the batches.
    fn event_details(
        &self,
        _connection: &mut Connection,
        _batch_ids: &[&[u8]],
    ) -> Result<HashMap<Vec<u8>, EventWithdrawal>, StoreError> {
        Ok(HashMap::new())
    }

    /// The condition under which retention removes `batches b`, which has ended.
    fn is_removable(&self) -> Option<&'static str> {
        None
    }

    /// A query for the `service_id` of services that wait for an operator although no batch of theirs is held.
    fn held_services(&self) -> Option<&'static str> {
        None
    }
}

/// The hooks of a build in which no module needs them.
#[cfg(any(test, not(feature = "withdrawals")))]
#[derive(Debug)]
pub(crate) struct NoHooks;

#[cfg(any(test, not(feature = "withdrawals")))]
impl BatchHooks for NoHooks {}
