use std::{
    fmt, io,
    net::{SocketAddr, TcpListener},
    sync::Arc,
    thread::JoinHandle,
};

use grid_batch_core::{InternalError, ShutdownHandle};
use grid_batch_support::{RuntimeThread, Shutdown, shut_down_runtime, spawn_thread};
use tokio::runtime::{Builder, Runtime};

use crate::{
    batches::{BatchListStore, BatchQueue},
    group_commit::{GroupStore, GroupWriter, QueueOf},
    parts::{ApiParts, WithdrawalParts},
    router::router,
    server::HttpServer,
    state::{ApiState, DatabaseWatch},
    withdrawals::{WithdrawalGroupStore, WithdrawalQueue},
};

/// A running HTTP interface, and the handle to shut it down.
///
/// A shutdown closes the listener, lets requests in progress finish for up to
/// [`drain_timeout`](crate::ApiOptions::drain_timeout), and stores all batches in the write queue.
/// Dropping the handle starts the shutdown and does not wait for it.
pub struct RunningApi {
    local_addr: SocketAddr,
    shutdown: ShutdownOnDrop,
    server: RuntimeThread<()>,
    writer: JoinHandle<()>,
}

/// Requests the shutdown when it is dropped.
struct ShutdownOnDrop(Shutdown);

impl Drop for ShutdownOnDrop {
    fn drop(&mut self) {
        self.0.request();
    }
}

impl RunningApi {
    /// The address at which it listens.
    pub fn local_addr(&self) -> SocketAddr {
        self.local_addr
    }
}

impl ShutdownHandle for RunningApi {
    fn signal_shutdown(&mut self) -> Result<(), InternalError> {
        self.shutdown.0.request();
        Ok(())
    }

    /// Waits until the shutdown is complete. If it was not requested yet, this requests it.
    fn wait_for_shutdown(mut self) -> Result<(), InternalError> {
        self.signal_shutdown()?;
        // The writer ends after the server, which holds the other end of the write queue.
        let (server, writer) = (self.server.join(), self.writer.join());
        server?;
        writer.map_err(|_| InternalError::new("the thread api-writer panicked"))
    }
}

impl fmt::Debug for RunningApi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunningApi").field("local_addr", &self.local_addr).finish_non_exhaustive()
    }
}

/// What is stored, and the queue of its writer.
pub(crate) enum Intake {
    Batches(BatchQueue),
    Withdrawals(WithdrawalParts, WithdrawalQueue),
}

pub(crate) fn start(
    mut parts: ApiParts,
    listener: TcpListener,
) -> Result<RunningApi, InternalError> {
    let failed = |error| InternalError::from_source("cannot start the HTTP interface", error);
    let local_addr = listener.local_addr().map_err(failed)?;
    let runtime = runtime(parts.options.worker_threads).map_err(failed)?;
    let listener = register(listener, &runtime).map_err(failed)?;
    let shutdown = Shutdown::new();

    // The writer ends when the queue is dropped, also if a later step fails.
    let (intake, writer) = start_writer(&mut parts)?;
    let options = parts.options.clone();
    let clock = Arc::clone(&parts.clock);
    let database = DatabaseWatch::new(Arc::clone(&parts.database_check));
    let state = ApiState::new(options.clone(), local_addr, shutdown.clone(), clock, database);
    let state = Arc::new(state);
    let router = router(parts, state, intake);
    let server = HttpServer { listener, router, options, shutdown: shutdown.clone() };
    let serve = move |runtime: Runtime| {
        runtime.block_on(server.run());
        shut_down_runtime(runtime);
    };
    let server = RuntimeThread::start("api-server", || Ok(runtime), serve)?;
    Ok(RunningApi { local_addr, shutdown: ShutdownOnDrop(shutdown), server, writer })
}

/// Starts the thread that stores what the interface accepts.
fn start_writer(parts: &mut ApiParts) -> Result<(Intake, JoinHandle<()>), InternalError> {
    let stored = parts.stored.clone();
    match parts.withdrawals.take() {
        None => {
            let store = BatchListStore { store: Arc::clone(&parts.intake_store), stored };
            let (queue, writer) = spawn_writer(parts, store)?;
            Ok((Intake::Batches(queue), writer))
        }
        Some(withdrawals) => {
            let store = WithdrawalGroupStore { store: Arc::clone(&withdrawals.store), stored };
            let (queue, writer) = spawn_writer(parts, store)?;
            Ok((Intake::Withdrawals(withdrawals, queue), writer))
        }
    }
}

fn spawn_writer<S>(
    parts: &ApiParts,
    store: S,
) -> Result<(QueueOf<S>, JoinHandle<()>), InternalError>
where
    S: GroupStore<Item: Send, Answer: Send> + Send + 'static,
{
    let (queue, requests) = QueueOf::<S>::new(parts.options.write_queue_limit);
    let writer = GroupWriter::new(requests, store, parts.commit_progress.clone());
    let writer = spawn_thread("api-writer", move || writer.run())?;
    Ok((queue, writer))
}

fn runtime(worker_threads: usize) -> io::Result<Runtime> {
    Builder::new_multi_thread()
        .worker_threads(worker_threads)
        .thread_name("api-worker")
        .enable_all()
        .build()
}

fn register(listener: TcpListener, runtime: &Runtime) -> io::Result<tokio::net::TcpListener> {
    let _entered = runtime.enter();
    listener.set_nonblocking(true)?;
    tokio::net::TcpListener::from_std(listener)
}
