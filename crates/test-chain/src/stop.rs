use std::{
    sync::{Arc, Condvar, Mutex, PoisonError},
    time::Duration,
};

use grid_batch_support::lock;

/// Holds one call until the test releases it.
///
/// The call stays held even if its client disconnects: once released, it continues to the node, like a request that is
/// already on its way. Dropping the stop releases the call.
#[derive(Debug)]
#[must_use = "a stop that is dropped stops nothing"]
pub struct Stop(pub(crate) Arc<StopSignal>);

impl Stop {
    /// Waits until the call is held. Returns `false` if it did not arrive before the timeout.
    pub fn wait(&self, timeout: Duration) -> bool {
        let stage = lock(&self.0.stage);
        let waiting =
            self.0.changed.wait_timeout_while(stage, timeout, |it| *it == StopStage::NotReached);
        *waiting.unwrap_or_else(PoisonError::into_inner).0 == StopStage::Held
    }

    /// Lets the call continue. A call that has not arrived yet will not be held.
    pub fn release(&self) {
        self.0.set_stage(StopStage::Released);
    }

    /// Closes the call's connection. No more bytes are sent in either direction.
    pub fn cut(&self) {
        self.0.set_stage(StopStage::Cut);
    }
}

impl Drop for Stop {
    fn drop(&mut self) {
        if matches!(*lock(&self.0.stage), StopStage::NotReached | StopStage::Held) {
            self.release();
        }
    }
}

/// What a [`Stop`] shares with the call that it holds.
#[derive(Debug, Default)]
pub(crate) struct StopSignal {
    stage: Mutex<StopStage>,
    changed: Condvar,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum StopStage {
    #[default]
    NotReached,
    Held,
    Released,
    Cut,
}

impl StopSignal {
    /// Holds the call until it is released. Returns `false` if its connection must be closed.
    pub(crate) fn hold(&self) -> bool {
        let mut stage = lock(&self.stage);
        if *stage == StopStage::NotReached {
            *stage = StopStage::Held;
            self.changed.notify_all();
        }
        let waiting = self.changed.wait_while(stage, |it| *it == StopStage::Held);
        *waiting.unwrap_or_else(PoisonError::into_inner) != StopStage::Cut
    }

    fn set_stage(&self, stage: StopStage) {
        *lock(&self.stage) = stage;
        self.changed.notify_all();
    }
}
