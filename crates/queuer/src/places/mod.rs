//! How many batches may be under way: of an instance, of a service and of a node.

#[cfg(test)]
mod node_tests;
mod rules;
#[cfg(test)]
mod tests;
mod window_size;

use std::{
    fmt,
    sync::{Arc, Mutex},
};

use grid_batch_core::batches::{BatchState, Change, Event};
use grid_batch_core::ledger::Outcome;
use grid_batch_core::queue::{Admission, TakenBatch};
use grid_batch_core::{BatchResult, Clock, ItemId, ServiceId};
use grid_batch_support::lock;
use grid_batch_work::{DueKind, WorkTable};

use rules::{Rules, State};

/// Which places there are.
#[derive(Clone)]
pub struct PlaceLimits {
    /// How many there are at first.
    pub initial: usize,
    /// The maximum number. How many places a ledger can take, between one and this number, is found by trying.
    pub largest: usize,
    /// How many a service may have.
    pub of_service: usize,
    /// How many places a node may have, and the function that returns the only node of a service, as a number. A
    /// service without one needs no place.
    pub of_node: Option<(usize, NodeOf)>,
}

/// Returns the node of a service.
pub type NodeOf = Arc<dyn Fn(&ServiceId) -> Option<usize> + Send + Sync>;

impl PlaceLimits {
    /// The *in-flight window*: up to `largest` batches under way, shared evenly by the services.
    ///
    /// A batch keeps its place until it has ended, waits to be sent again, is held, or is *overdue*: under way for much
    /// longer than usual, while later ones were committed.
    pub fn window(largest: usize) -> Self {
        const INITIAL: usize = 50;
        let (initial, of_service) = (largest.min(INITIAL), usize::MAX);
        Self { initial, largest, of_service, of_node: None }
    }

    /// This many places, with at most one for each service. Nodes share them so that a node that is slow or hangs does
    /// not take them all. A batch keeps its place until its submission has ended.
    pub fn of_nodes(
        places: usize,
        most_of_node: usize,
        node_of: impl Fn(&ServiceId) -> Option<usize> + Send + Sync + 'static,
    ) -> Self {
        let of_node: Option<(usize, NodeOf)> = Some((most_of_node, Arc::new(node_of)));
        Self { initial: places, largest: places, of_service: 1, of_node }
    }

    /// Whether a batch keeps its place while it is under way, rather than only until its submission has ended.
    fn is_window(&self) -> bool {
        self.of_node.is_none()
    }
}

/// How many batches are under way, and how many may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InFlightCounts {
    /// How many are under way.
    pub under_way: usize,
    /// How many of them have been under way for much longer than usual, so that they do not count in the window any
    /// more.
    pub overdue: usize,
    /// How many may be under way now.
    pub window: usize,
    /// The maximum size of the window.
    pub largest: usize,
}

/// The places of an instance, of each service and of each node, in that order.
///
/// - The places of the **instance** grow while batches are committed, and shrink by a quarter when the ledger is busy,
///   unless their initial and largest number are the same.
/// - **Services** share them evenly: while others want more than they have, a service gets at most its share; otherwise
///   it gets all free places. A share is at least one place.
/// - A **node** has at most as many places as are free, and at most its limit: one busy node gets half of all places,
///   two get a third each, and some are always left for another node.
///
/// Services that wait for a place, of the instance or of their node, get one in turns. Clones share the places. They
/// belong to one instance and start empty after a restart. The batches under way are in the [`WorkTable`], whose commit
/// times show how long batches usually take.
#[derive(Clone)]
pub struct Places(Arc<Shared>);

struct Shared {
    limits: PlaceLimits,
    table: WorkTable,
    clock: Arc<dyn Clock>,
    wake: Box<dyn Fn(ServiceId) + Send + Sync>,
    state: Mutex<State>,
    /// One reading of the store at a time.
    reading: Mutex<()>,
}

impl Places {
    /// Creates places that are all free. `wake` wakes a service in the queue; it must return quickly. A table may
    /// belong to only one `Places`.
    pub fn new(
        limits: PlaceLimits,
        table: WorkTable,
        clock: Arc<dyn Clock>,
        wake: impl Fn(ServiceId) + Send + Sync + 'static,
    ) -> Self {
        let state = Mutex::new(State::new(limits.initial, limits.largest));
        let (wake, reading) = (Box::new(wake), Mutex::default());
        Self(Arc::new(Shared { limits, table, clock, wake, state, reading }))
    }

    /// The present counts.
    pub fn counts(&self) -> InFlightCounts {
        let (window, largest) =
            (lock(&self.0.state).window.batches(), self.0.limits.largest.max(1));
        let work = self.0.table.lock();
        let overdue = work.due.count(DueKind::Overdue);
        let under_way = work.due.count(DueKind::Place) + overdue;
        InFlightCounts { under_way, overdue, window, largest }
    }

    /// Replaces the known batches under way with those that `read` returns: the batches in the store that were
    /// submitted, have not ended and are not held. Changes during the call are kept.
    pub fn refresh(
        &self,
        read: impl FnOnce() -> BatchResult<Vec<(ServiceId, ItemId)>>,
    ) -> BatchResult<()> {
        let _one_at_a_time = lock(&self.0.reading);
        lock(&self.0.state).start_reading();
        let found = read()?;
        self.change(|rules| rules.finish_reading(&found));
        Ok(())
    }

    /// Handles a recorded change, after which its batch is in this state.
    pub fn recorded(&self, change: &Change, state: BatchState) {
        let is_under_way = match state {
            BatchState::New
            | BatchState::Delayed
            | BatchState::Absent
            | BatchState::Committed
            | BatchState::Invalid => false,
            BatchState::Submitting
            | BatchState::InDoubt
            | BatchState::Pending
            | BatchState::Valid => change.hold.is_none(),
        };
        if is_under_way {
            return;
        }
        let (service_id, batch_id) = (change.service_id.as_str(), &*change.batch_id.to_string());
        let is_busy = matches!(change.event, Event::Outcome { outcome: Outcome::Busy, .. });
        self.change(|rules| {
            if state == BatchState::Committed {
                rules.committed(service_id, batch_id);
            }
            let was_taken_again = rules.was_taken_again(service_id, batch_id, change.event);
            if !state.is_terminal() && was_taken_again {
                return;
            }
            let under_way = rules.under_way();
            let Some(lowered) = rules.remove(service_id, batch_id) else { return };
            if is_busy {
                rules.state.window.busy(lowered, under_way);
            } else if state == BatchState::Committed {
                rules.state.window.committed(under_way);
            }
        });
    }

    /// Changes the places, and wakes the services that may then take one.
    fn change<T>(&self, change: impl FnOnce(&mut Rules<'_>) -> T) -> T {
        let (result, called) = self.locked(|rules| {
            // A turn may have ended since.
            let mut called = rules.call();
            let result = change(rules);
            called.extend(rules.call());
            (result, called)
        });
        called.into_iter().for_each(|service| (self.0.wake)(service));
        result
    }

    fn locked<T>(&self, change: impl FnOnce(&mut Rules<'_>) -> T) -> T {
        let Shared { limits, table, clock, state, .. } = &*self.0;
        let now = clock.monotonic();
        let (mut state, mut work) = (lock(state), table.lock());
        change(&mut Rules { limits, state: &mut state, work: &mut work, now })
    }
}

impl Admission for Places {
    fn admit(&self, service_id: &ServiceId, wanted: usize) -> usize {
        let limits = &self.0.limits;
        let wanted = wanted.min(limits.of_service);
        let node = limits.of_node.as_ref().map(|(_, node_of)| node_of(service_id));
        if node == Some(None) {
            return wanted;
        }
        let (admitted, called) =
            self.change(|rules| rules.admit(service_id, node.flatten(), wanted));
        called.into_iter().for_each(|service| (self.0.wake)(service));
        admitted
    }

    fn taken(&self, _: &ServiceId, batches: &[&TakenBatch]) {
        if self.0.limits.is_window() {
            self.change(|rules| batches.iter().for_each(|batch| rules.taken(batch)));
        }
    }

    fn release(&self, service_id: &ServiceId, unused: usize) {
        self.change(|rules| rules.release(service_id.as_str(), unused));
    }

    fn put_back(&self, service_id: &ServiceId, unused: usize) {
        self.locked(|rules| rules.put_back(service_id.as_str(), unused));
    }

    fn given_back(&self, batch: &TakenBatch) {
        let (service_id, batch_id) = (batch.service_id.as_str(), batch.batch_id.to_string());
        self.change(|rules| {
            if rules.limits.is_window() {
                rules.remove(service_id, &batch_id);
            } else {
                rules.remove_places(service_id, 1);
            }
        });
    }

    fn submission_ended(&self, service_id: &ServiceId) {
        if !self.0.limits.is_window() {
            self.change(|rules| rules.remove_places(service_id.as_str(), 1));
        }
    }
}

impl fmt::Debug for Places {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Places").field("counts", &self.counts()).finish_non_exhaustive()
    }
}

impl fmt::Debug for PlaceLimits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of_node = self.of_node.as_ref().map(|(most, _)| most);
        f.debug_struct("PlaceLimits")
            .field("largest", &self.largest)
            .field("of_service", &self.of_service)
            .field("of_node", &of_node)
            .finish_non_exhaustive()
    }
}
