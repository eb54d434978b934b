use std::{
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

/// A call that is held where a test wants it, until the test lets it go.
///
/// It is there though its asker has died meanwhile, as what is on its way in a network is: released,
/// it goes on to the node. What is dropped is released.
#[derive(Debug)]
#[must_use = "a stop that is dropped stops nothing"]
pub struct Stop(pub(crate) Arc<Gate>);

impl Stop {
    /// Waits until the call has come, and says whether it has.
    pub fn wait(&self, timeout: Duration) -> bool {
        let stage = self.0.stage();
        let waiting = self.0.changed.wait_timeout_while(stage, timeout, |it| *it == Stage::Open);
        *waiting.unwrap_or_else(PoisonError::into_inner).0 == Stage::Held
    }

    /// Lets the call go on. One that has not come yet will not be held.
    pub fn release(&self) {
        self.0.turn(Stage::Released);
    }

    /// Closes the call's connection, without another byte in either direction.
    pub fn cut(&self) {
        self.0.turn(Stage::Cut);
    }
}

impl Drop for Stop {
    fn drop(&mut self) {
        if matches!(*self.0.stage(), Stage::Open | Stage::Held) {
            self.release();
        }
    }
}

/// Where the one call passes that is to be held.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    stage: Mutex<Stage>,
    changed: Condvar,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Stage {
    #[default]
    Open,
    Held,
    Released,
    Cut,
}

impl Gate {
    /// Holds the call, and says whether it may go on.
    pub(crate) fn pass(&self) -> bool {
        let mut stage = self.stage();
        if *stage == Stage::Open {
            *stage = Stage::Held;
            self.changed.notify_all();
        }
        let waiting = self.changed.wait_while(stage, |it| *it == Stage::Held);
        *waiting.unwrap_or_else(PoisonError::into_inner) != Stage::Cut
    }

    fn turn(&self, to: Stage) {
        *self.stage() = to;
        self.changed.notify_all();
    }

    fn stage(&self) -> MutexGuard<'_, Stage> {
        self.stage.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
