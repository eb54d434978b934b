use std::{
    io,
    sync::mpsc,
    thread::{Builder, JoinHandle},
};

use grid_batch_core::InternalError;
use tokio::runtime::Runtime;

/// A thread that runs something on a runtime, and gives back what that comes to.
#[derive(Debug)]
pub(crate) struct RuntimeThread<T> {
    name: &'static str,
    handle: JoinHandle<Option<T>>,
}

impl<T: Send + 'static> RuntimeThread<T> {
    /// Starts it. It is the thread that drops the runtime: a caller may be in one himself.
    pub(crate) fn start(
        name: &'static str,
        runtime: impl FnOnce() -> io::Result<Runtime>,
        run: impl FnOnce(Runtime) -> T + Send + 'static,
    ) -> Result<Self, InternalError> {
        let failed = |error| InternalError::from_source(format!("{name} does not start"), error);
        let (give, given) = mpsc::channel();
        // When it is given no runtime, it ends.
        let wait_and_run = move || given.recv().ok().map(run);
        let handle = Builder::new().name(name.to_owned()).spawn(wait_and_run).map_err(failed)?;
        // It waits, so it takes it.
        let _ = give.send(runtime().map_err(failed)?);
        Ok(Self { name, handle })
    }

    /// Waits until it has ended.
    pub(crate) fn join(self) -> Result<T, InternalError> {
        let panicked = || InternalError::new(format!("the thread {} panicked", self.name));
        self.handle.join().ok().flatten().ok_or_else(panicked)
    }
}
