use std::{io, time::Duration};

use tokio::runtime::{Builder, Runtime};

/// A runtime for the questions to ledgers.
pub(crate) fn for_questions(worker_threads: usize) -> io::Result<Runtime> {
    // Adapters may need more than time: whatever tokio was compiled with is enabled.
    Builder::new_multi_thread()
        .worker_threads(worker_threads)
        .thread_name("poll-worker")
        .enable_all()
        .build()
}

/// A runtime for the sockets of events, on the thread that runs it.
pub(crate) fn for_events() -> io::Result<Runtime> {
    Builder::new_current_thread().thread_name("poll-events").enable_all().build()
}

/// Ends a runtime, on a thread that is in none.
pub(crate) fn end(runtime: Runtime) {
    /// For what an adapter may have left behind, such as a name being looked up.
    const LEFTOVERS: Duration = Duration::from_secs(1);
    runtime.shutdown_timeout(LEFTOVERS);
}
