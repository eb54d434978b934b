use std::{
    sync::mpsc::{self, RecvTimeoutError},
    thread::{Builder, JoinHandle},
    time::Duration,
};

use grid_batch_core::InternalError;

/// Starts a thread with this name.
pub fn spawn_thread<T: Send + 'static>(
    name: &str,
    run: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>, InternalError> {
    Builder::new()
        .name(name.to_owned())
        .spawn(run)
        .map_err(|error| InternalError::from_source(format!("cannot start thread {name}"), error))
}

/// A thread that does the same work at an interval, for components that must work without [`Jobs`](crate::Jobs), such
/// as a log. Dropping it ends the thread and waits for it.
#[derive(Debug)]
pub struct PeriodicThread {
    end: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl PeriodicThread {
    /// Starts the thread. It works for the first time after one `interval`.
    pub fn start(
        name: &str,
        interval: Duration,
        mut work: impl FnMut() + Send + 'static,
    ) -> Result<Self, InternalError> {
        let (end, ended) = mpsc::channel();
        let thread = spawn_thread(name, move || {
            while let Err(RecvTimeoutError::Timeout) = ended.recv_timeout(interval) {
                work();
            }
        })?;
        Ok(Self { end: Some(end), thread: Some(thread) })
    }
}

impl Drop for PeriodicThread {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            // A panic has been printed by the panic hook already.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thread_has_its_name() {
        let name = spawn_thread("named", || std::thread::current().name().map(ToOwned::to_owned));
        assert_eq!(name.unwrap().join().unwrap().as_deref(), Some("named"));
    }

    #[test]
    fn periodic_thread_works_until_it_is_dropped() {
        let (worked, works) = mpsc::channel();
        let thread = PeriodicThread::start("periodic", Duration::from_millis(1), move || {
            let _ = worked.send(());
        });
        works.recv().unwrap();
        works.recv().unwrap();
        drop(thread.unwrap());
        assert!(works.iter().count() < usize::MAX, "the sender is gone with the thread");
    }
}
