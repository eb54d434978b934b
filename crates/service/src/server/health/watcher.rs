use std::{
    sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    time::Duration,
};

use grid_batch_core::InternalError;
use grid_batch_support::spawn_thread;

/// A thread that reads from the database again and again.
///
/// Dropping it ends the thread, and waits for it only for a moment: it may be waiting for the database.
#[derive(Debug)]
pub(in crate::server) struct Watcher {
    end: Option<Sender<()>>,
    ended: Receiver<()>,
}

impl Watcher {
    /// What the thread uses, such as a connection, is closed within this time if the database answers.
    const END_LIMIT: Duration = Duration::from_secs(1);

    /// Starts the thread. `work` returns the pause until it is done again.
    pub(in crate::server) fn start(
        name: &str,
        mut work: impl FnMut() -> Duration + Send + 'static,
    ) -> Result<Self, InternalError> {
        let (end, end_requested) = channel();
        let (running, ended) = channel();
        spawn_thread(name, move || {
            while end_requested.recv_timeout(work()) == Err(RecvTimeoutError::Timeout) {}
            drop(work);
            drop(running);
        })?;
        Ok(Self { end: Some(end), ended })
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        drop(self.end.take());
        // The thread sends nothing; its end closes the channel.
        let _ = self.ended.recv_timeout(Self::END_LIMIT);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_repeated_and_dropped_at_the_end() {
        let (sender, receiver) = channel::<()>();
        let watcher = Watcher::start("watched", move || {
            let _ = sender.send(());
            Duration::from_millis(1)
        });
        receiver.recv().unwrap();
        receiver.recv().unwrap();
        drop(watcher.unwrap());
        while receiver.try_recv().is_ok() {}
        assert_eq!(receiver.try_recv(), Err(std::sync::mpsc::TryRecvError::Disconnected));
    }

    #[test]
    fn work_that_is_blocked_does_not_block_the_end() {
        let (release, released) = channel::<()>();
        let watcher = Watcher::start("blocked", move || {
            let _ = released.recv();
            Duration::ZERO
        });
        drop(watcher.unwrap());
        drop(release);
    }
}
