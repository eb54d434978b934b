use std::io;

use tokio::runtime::{Builder, Runtime};

/// Builds the runtime of the requests to ledgers.
pub(crate) fn for_requests(worker_threads: usize) -> io::Result<Runtime> {
    // Adapters may need more than time, so every driver that tokio was compiled with is enabled.
    Builder::new_multi_thread()
        .worker_threads(worker_threads)
        .thread_name("poll-worker")
        .enable_all()
        .build()
}

/// Builds the runtime of the event streams, which runs on one thread.
pub(crate) fn for_events() -> io::Result<Runtime> {
    Builder::new_current_thread().thread_name("poll-events").enable_all().build()
}
