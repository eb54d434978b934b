//! Which waiting batches a validator executes next.

use std::collections::VecDeque;

use grid_batch_core::{ItemId, Timestamp};
use grid_batch_protocol::VerifiedBatch;

use crate::{random::Random, state::BatchAccess};

/// The maximum number of waiting batches that are executed in any order.
const WINDOW: usize = 300;

/// A batch in the queue of a validator.
#[derive(Debug)]
pub(super) struct PooledBatch {
    pub(super) batch: VerifiedBatch,
    pub(super) due: Timestamp,
    access: BatchAccess,
}

impl PooledBatch {
    pub(super) fn new(batch: VerifiedBatch, due: Timestamp) -> Self {
        let access = BatchAccess::of_verified(&batch);
        Self { batch, due, access }
    }

    pub(super) fn access(&self) -> &BatchAccess {
        &self.access
    }

    fn must_follow(&self, earlier: &Self) -> bool {
        let depends_on =
            |id: ItemId| self.batch.transactions().iter().any(|it| it.dependencies().contains(&id));
        self.access.conflicts_with(&earlier.access)
            || earlier.batch.transactions().iter().any(|it| depends_on(it.id()))
    }
}

/// Takes the due batches from the queue, in an order in which no batch precedes an earlier batch that it conflicts with
/// or depends on. The caller returns the batches that it does not execute.
pub(super) fn take_in_any_order(
    pool: &mut VecDeque<PooledBatch>,
    now: Timestamp,
    random: &mut Random,
) -> Vec<(usize, PooledBatch)> {
    let mut due = take_in_order(pool, now);
    let mut ordered = Vec::with_capacity(due.len());
    // For each batch, the number of earlier batches that it must follow and that are not in the order yet.
    let mut waits_for: Vec<usize> = (0..due.len())
        .map(|later| (0..later).filter(|it| due[later].1.must_follow(&due[*it].1)).count())
        .collect();
    while !due.is_empty() {
        let free: Vec<usize> = (0..due.len()).filter(|index| waits_for[*index] == 0).collect();
        // The first one is always free.
        let chosen = free[random.next() as usize % free.len()];
        let next = due.remove(chosen);
        waits_for.remove(chosen);
        for (later, waits) in due.iter().zip(&mut waits_for).skip(chosen) {
            *waits -= usize::from(later.1.must_follow(&next.1));
        }
        ordered.push(next);
    }
    ordered
}

/// Takes the batches that are due, with their positions, in the order in which they arrived.
pub(super) fn take_in_order(
    pool: &mut VecDeque<PooledBatch>,
    now: Timestamp,
) -> Vec<(usize, PooledBatch)> {
    let due = pool.iter().take(WINDOW).take_while(|pooled| pooled.due <= now).count();
    pool.drain(..due).enumerate().collect()
}

/// Returns batches to the queue, in the order in which they arrived.
pub(super) fn put_back(
    pool: &mut VecDeque<PooledBatch>,
    batches: impl Iterator<Item = (usize, PooledBatch)>,
) {
    let mut batches: Vec<_> = batches.collect();
    batches.sort_by_key(|(place, _)| *place);
    for (_, batch) in batches.into_iter().rev() {
        pool.push_front(batch);
    }
}
