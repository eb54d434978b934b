//! Whether a batch that has ended stops others.

use grid_batch_core::batches::BatchState;
use grid_batch_core::queue::AfterInvalid;
use grid_batch_core::{ServiceId, Timestamp};

use super::table::{HaltOrigin, StoredHalt, insert_halts, insert_halts_in_order};
use crate::{
    scheduling::{Positioned, insert_changed},
    sql::{Connection, Scheduler, StoreError},
};

/// Whether a batch that has ended stops others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stops {
    /// It stops none.
    Nothing,
    /// The batches that follow wait for an operator.
    Following,
    /// The batches that follow, up to this position, end because of an operator's decision.
    FollowingForGood(i64),
}

impl Stops {
    /// By the policy of its service.
    pub(crate) fn by_policy(
        scheduler: &Scheduler,
        service_id: &ServiceId,
        state: BatchState,
    ) -> Self {
        if state != BatchState::Invalid {
            return Self::Nothing;
        }
        match scheduler.of(service_id).after_invalid {
            AfterInvalid::Halt => Self::Following,
            AfterInvalid::Continue => Self::Nothing,
        }
    }
}

/// Records that these batches of services with positions stop others.
pub(crate) fn stop_following(
    connection: &mut Connection,
    scheduler: &Scheduler,
    ended: &[(Positioned, Stops)],
    now: Timestamp,
) -> Result<(), StoreError> {
    if ended.is_empty() {
        return Ok(());
    }
    let halt = |(batch, stops): &(Positioned, Stops)| {
        let (origin, ends_until) = match stops {
            Stops::FollowingForGood(until) => (HaltOrigin::Following, Some(*until)),
            Stops::Nothing | Stops::Following => (HaltOrigin::Policy, None),
        };
        (StoredHalt { batch: batch.clone(), ends_until }, origin)
    };
    insert_halts(connection, &ended.iter().map(halt).collect::<Vec<_>>(), now)?;
    let for_good = ended.iter().filter(|(_, stops)| matches!(stops, Stops::FollowingForGood(_)));
    insert_changed(connection, scheduler, for_good.map(|(batch, _)| batch.0), now)
}

/// Records which of these ended batches stop others. Their services have one lane, and batches wait in the order of
/// `created_at`.
pub(crate) fn stop_in_order(
    connection: &mut Connection,
    ended: impl Iterator<Item = (i64, Stops)>,
    now: Timestamp,
) -> Result<(), StoreError> {
    let stopping = ended.filter(|(_, stops)| *stops == Stops::Following).map(|(seq, _)| seq);
    insert_halts_in_order(connection, &stopping.collect::<Vec<_>>(), now)
}
