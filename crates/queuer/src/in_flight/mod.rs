//! How many batches may be under way at a ledger, and which services they are of.

mod places;
mod shares;
#[cfg(test)]
mod tests;
mod turns;
mod usual_time;
mod window_size;

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use grid_batch_core::{
    Admission, BatchResult, BatchState, Change, Clock, Event, ItemId, Outcome, ServiceId,
    TakenBatch,
};

use places::Places;
use window_size::WindowSize;

/// How large an [`InFlightWindow`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InFlightOptions {
    /// How many batches may be under way at first.
    pub initial: usize,
    /// How many batches may be under way at most.
    pub largest: usize,
}

impl InFlightOptions {
    /// Up to `largest` batches, and less at first: how many the ledger takes is found by trying.
    pub fn up_to(largest: usize) -> Self {
        const INITIAL: usize = 50;
        Self { initial: largest.min(INITIAL), largest }
    }
}

/// How many batches are under way, and how many may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InFlightCounts {
    /// How many are under way.
    pub under_way: usize,
    /// How many of them are so for much longer than usual, and do not count in the window any more.
    pub overdue: usize,
    /// How many may be under way now.
    pub window: usize,
    /// How many the window may grow to.
    pub largest: usize,
}

/// The *in-flight window*: how many batches may be under way at the ledger now.
///
/// A batch is under way from when it was taken until it has ended, or waits to be sent again. Batches that are
/// held do not count, nor do *overdue* ones: those that are under way for much longer than usual, while later ones
/// were committed. The window grows while batches are committed, and shrinks by a quarter when the ledger is busy.
///
/// Services share it evenly: a service gets no more than its share while others want more than they have, and
/// all that is free otherwise. A share is at least one batch, and services that wait for a place get one in
/// turns. Clones share the window. It is that of one instance, and begins anew after a restart.
#[derive(Clone)]
pub struct InFlightWindow(Arc<State>);

struct State {
    largest: usize,
    clock: Arc<dyn Clock>,
    wake: Box<dyn Fn(ServiceId) + Send + Sync>,
    places: Mutex<Places>,
    /// One reading of the store at a time.
    reading: Mutex<()>,
}

impl InFlightWindow {
    /// A window in which nothing is under way. `wake` wakes a service in the queue; it must return quickly.
    pub fn new(
        options: InFlightOptions,
        clock: Arc<dyn Clock>,
        wake: impl Fn(ServiceId) + Send + Sync + 'static,
    ) -> Self {
        let places = Places::new(WindowSize::new(options.initial, options.largest));
        Self(Arc::new(State {
            largest: options.largest.max(1),
            clock,
            wake: Box::new(wake),
            places: Mutex::new(places),
            reading: Mutex::default(),
        }))
    }

    /// The present counts.
    pub fn counts(&self) -> InFlightCounts {
        let places = self.lock();
        let (overdue, window) = (places.overdue(), places.window.batches());
        let under_way = places.under_way() + overdue;
        InFlightCounts { under_way, overdue, window, largest: self.0.largest }
    }

    /// Whether batches of the service that could be sent wait for places.
    pub fn waits(&self, service_id: &ServiceId) -> bool {
        self.lock().waits(service_id)
    }

    /// Replaces what is known of the batches under way by what `read` returns: the batches of the store that
    /// were submitted, have not ended and are not held. What changes during the call is kept.
    pub fn refresh(
        &self,
        read: impl FnOnce() -> BatchResult<Vec<(ServiceId, ItemId)>>,
    ) -> BatchResult<()> {
        let _one_at_a_time = self.0.reading.lock().unwrap_or_else(PoisonError::into_inner);
        self.lock().start_reading();
        let found = read()?;
        let now = self.0.clock.monotonic();
        self.change(|places| places.finish_reading(found, now));
        Ok(())
    }

    /// A change was recorded; its batch is in this state now.
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
        let is_busy = matches!(change.event, Event::Outcome { outcome: Outcome::Busy, .. });
        let now = self.0.clock.monotonic();
        self.change(|places| {
            if state == BatchState::Committed {
                places.committed(&change.batch_id, now);
            }
            let under_way = places.under_way();
            if !state.is_terminal() && places.was_taken_again(&change.batch_id, change.event) {
                return;
            }
            let Some(lowered) = places.remove(&change.batch_id) else { return };
            if is_busy {
                places.window.busy(lowered, under_way);
            } else if state == BatchState::Committed {
                places.window.committed(under_way);
            }
        });
    }

    /// Changes the places, and wakes the services that may take one now.
    fn change<T>(&self, change: impl FnOnce(&mut Places) -> T) -> T {
        let now = self.0.clock.monotonic();
        let (result, called) = {
            let mut places = self.lock();
            // A turn may have ended since.
            let mut called = places.call(now);
            let result = change(&mut places);
            called.extend(places.call(now));
            (result, called)
        };
        called.into_iter().for_each(|service| (self.0.wake)(service));
        result
    }

    fn lock(&self) -> MutexGuard<'_, Places> {
        self.0.places.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Admission for InFlightWindow {
    fn admit(&self, service_id: &ServiceId, wanted: usize) -> usize {
        let now = self.0.clock.monotonic();
        self.change(|places| places.admit(service_id, wanted, now))
    }

    fn taken(&self, _: &ServiceId, batches: &[&TakenBatch]) {
        let now = self.0.clock.monotonic();
        self.change(|places| batches.iter().for_each(|batch| places.taken(batch, now)));
    }

    fn release(&self, service_id: &ServiceId, unused: usize) {
        self.change(|places| places.release(service_id, unused));
    }

    fn put_back(&self, service_id: &ServiceId, unused: usize) {
        let now = self.0.clock.monotonic();
        self.lock().put_back(service_id, unused, now);
    }

    fn given_back(&self, batch: &TakenBatch) {
        self.change(|places| places.remove(&batch.batch_id));
    }

    /// The batch is still under way.
    fn submission_ended(&self, _: &ServiceId) {}
}

impl fmt::Debug for InFlightWindow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InFlightWindow").field("counts", &self.counts()).finish_non_exhaustive()
    }
}
