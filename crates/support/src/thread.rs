use std::{
    io,
    sync::mpsc::{self, RecvTimeoutError},
    thread::{Builder, JoinHandle},
    time::Duration,
};

use grid_batch_core::InternalError;
use tokio::runtime::Runtime;

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

/// A thread that does the same work at an interval. Dropping it ends the thread and waits for it.
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
        Self::start_with_pauses(name, interval, move || {
            work();
            interval
        })
    }

    /// Starts a thread whose work returns the pause that follows it. It works for the first time after
    /// `first_pause`.
    pub fn start_with_pauses(
        name: &str,
        first_pause: Duration,
        mut work: impl FnMut() -> Duration + Send + 'static,
    ) -> Result<Self, InternalError> {
        let (end, ended) = mpsc::channel();
        let thread = spawn_thread(name, move || {
            let mut pause = first_pause;
            while let Err(RecvTimeoutError::Timeout) = ended.recv_timeout(pause) {
                pause = work();
            }
        })?;
        Ok(Self { end: Some(end), thread: Some(thread) })
    }
}

impl Drop for PeriodicThread {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            // The panic hook has printed a panic already.
            let _ = thread.join();
        }
    }
}

/// A thread that runs a tokio runtime.
#[derive(Debug)]
pub struct RuntimeThread<T> {
    name: &'static str,
    handle: JoinHandle<Option<T>>,
}

impl<T: Send + 'static> RuntimeThread<T> {
    /// Starts the thread. It drops the runtime itself, since the caller may be inside another one,
    /// where dropping a runtime panics.
    pub fn start(
        name: &'static str,
        runtime: impl FnOnce() -> io::Result<Runtime>,
        run: impl FnOnce(Runtime) -> T + Send + 'static,
    ) -> Result<Self, InternalError> {
        let (sender, receiver) = mpsc::channel();
        let handle = spawn_thread(name, move || receiver.recv().ok().map(run))?;
        let runtime = runtime().map_err(|error| {
            InternalError::from_source(format!("cannot start the runtime of {name}"), error)
        })?;
        // The thread waits for it.
        let _ = sender.send(runtime);
        Ok(Self { name, handle })
    }

    /// Waits until the thread has ended.
    pub fn join(self) -> Result<T, InternalError> {
        let panicked = || InternalError::new(format!("the thread {} panicked", self.name));
        self.handle.join().ok().flatten().ok_or_else(panicked)
    }
}

/// Shuts a runtime down, from a thread that is not inside one.
pub fn shut_down_runtime(runtime: Runtime) {
    /// For what an adapter may have left running, such as a name lookup.
    const LEFTOVERS: Duration = Duration::from_secs(1);
    runtime.shutdown_timeout(LEFTOVERS);
}

#[cfg(test)]
mod tests {
    use tokio::runtime::Builder;

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

    #[test]
    fn runtime_thread_returns_its_result() {
        let runtime = || Builder::new_current_thread().build();
        let thread = RuntimeThread::start("runtime", runtime, |runtime| {
            let result = runtime.block_on(async { 7 });
            shut_down_runtime(runtime);
            result
        });
        assert_eq!(thread.unwrap().join().unwrap(), 7);
    }

    #[test]
    fn panic_of_a_runtime_thread_is_an_error() {
        let runtime = || Builder::new_current_thread().build();
        let thread = RuntimeThread::<()>::start("runtime", runtime, |_| panic!("of the test"));
        let error = thread.unwrap().join().unwrap_err();
        assert_eq!(error.to_string(), "the thread runtime panicked");
    }
}
