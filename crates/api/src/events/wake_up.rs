use std::{sync::Arc, time::Duration};

use grid_batch_core::events::EventListener;
use tokio::{
    sync::watch,
    time::{sleep, timeout},
};

/// How often the store is asked without a wake-up: other instances write events, too.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// The shortest time between two reads of a listener, so that one reads what several commits wrote.
const PAUSE: Duration = Duration::from_millis(50);

/// Wakes what waits for events when this process has written some.
#[derive(Debug)]
pub(super) struct EventWakeUp(watch::Sender<()>);

impl EventWakeUp {
    pub(super) fn new() -> Self {
        Self(watch::Sender::new(()))
    }

    /// What a store calls after a commit with events.
    pub(super) fn listener(&self) -> EventListener {
        let sender = self.0.clone();
        Arc::new(move || {
            sender.send_replace(());
        })
    }

    /// Waits from now on.
    pub(super) fn subscribe(&self) -> Waiter {
        Waiter(self.0.subscribe())
    }
}

/// Waits for events that were written since it was made, or since it waited last.
#[derive(Debug)]
pub(super) struct Waiter(watch::Receiver<()>);

impl Waiter {
    /// Waits until the store should be read again.
    pub(super) async fn wait(&mut self) {
        sleep(PAUSE).await;
        // An error would mean that the sender is gone, and the context has it.
        let _ = timeout(POLL_INTERVAL, self.0.changed()).await;
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn waiter_is_woken_by_commits_and_polls_without_them() {
        let wake_up = EventWakeUp::new();
        let mut waiter = wake_up.subscribe();
        let started = Instant::now();
        waiter.wait().await;
        assert_eq!(started.elapsed(), PAUSE + POLL_INTERVAL);
        wake_up.listener()();
        let started = Instant::now();
        waiter.wait().await;
        assert_eq!(started.elapsed(), PAUSE, "a commit before the wait counts");
    }
}
