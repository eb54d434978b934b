use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::Arc,
};

use axum::Router;
use grid_batch_core::InternalError;
use grid_batch_support::{Job, Jobs, Shutdown};

use crate::{
    ApiListener, ShutdownHandle,
    batches::{BatchListStore, BatchWriteQueue},
    group_commit::{GroupStore, GroupWriter, QueueOf},
    in_process::InProcessApi,
    parts::{ApiParts, WithdrawalParts},
    router::router,
    server::HttpServer,
    state::ApiState,
    withdrawals::{WithdrawalGroupStore, WithdrawalQueue},
};

/// A running HTTP interface, and the handle to shut it down.
///
/// A shutdown closes the listener, lets requests in progress finish for up to
/// [`drain_timeout`](crate::ApiOptions::drain_timeout), and stores all batches in the write queue.
/// Dropping the handle starts the shutdown and does not wait for it.
pub struct RunningApi {
    local_addr: SocketAddr,
    server: Job,
    writer: Job,
}

impl RunningApi {
    /// The first address at which it listens; port 80 of this machine if it listens at Unix sockets only.
    pub fn local_addr(&self) -> SocketAddr {
        self.local_addr
    }
}

impl ShutdownHandle for RunningApi {
    fn signal_shutdown(&mut self) -> Result<(), InternalError> {
        self.server.signal_shutdown()
    }

    /// Waits until the shutdown is complete. If it was not requested yet, this requests it.
    fn wait_for_shutdown(self) -> Result<(), InternalError> {
        // The writer ends after the server, which holds the other end of the write queue.
        let (server, writer) = (self.server.join(), self.writer.join());
        server.and(writer)
    }
}

impl fmt::Debug for RunningApi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunningApi").field("local_addr", &self.local_addr).finish_non_exhaustive()
    }
}

/// What is stored, and the queue of its writer.
pub(crate) enum Intake {
    Batches(BatchWriteQueue),
    Withdrawals(WithdrawalParts, WithdrawalQueue),
}

/// What links without a host lead to, if no listener has an address.
const NO_ADDRESS: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 80);

pub(crate) fn start(
    mut parts: ApiParts,
    listeners: Vec<ApiListener>,
) -> Result<RunningApi, InternalError> {
    let failed = |error| InternalError::from_source("cannot start the HTTP interface", error);
    let local_addr = listeners.iter().find_map(ApiListener::local_addr);
    let local_addr = local_addr.unwrap_or(NO_ADDRESS);
    let jobs = take_jobs(&mut parts)?;
    let listeners = listeners.into_iter().map(|listener| listener.register(jobs.handle()));
    let listeners: Vec<_> = listeners.collect::<Result<_, _>>().map_err(failed)?;
    let shutdown = Shutdown::new();
    let (options, proxies) = (parts.options.clone(), Arc::new(parts.proxies.clone()));
    let (router, writer) = start_router(parts, local_addr, &jobs, &shutdown)?;
    let server = HttpServer {
        listeners,
        router,
        options,
        proxies,
        shutdown: shutdown.clone(),
        closing: Shutdown::new(),
    };
    let server = jobs.spawn_until("api-server", shutdown, server.run());
    Ok(RunningApi { local_addr, server, writer })
}

/// Starts an interface without listeners.
pub(crate) fn start_in_process(mut parts: ApiParts) -> Result<InProcessApi, InternalError> {
    let jobs = take_jobs(&mut parts)?;
    let (router, writer) = start_router(parts, NO_ADDRESS, &jobs, &Shutdown::new())?;
    Ok(InProcessApi::new(router, writer, jobs))
}

fn take_jobs(parts: &mut ApiParts) -> Result<Jobs, InternalError> {
    match parts.jobs.take() {
        Some(jobs) => Ok(jobs),
        None => Jobs::with_workers(parts.options.worker_threads),
    }
}

/// The routes, and the job that stores what they accept. It ends when they are dropped.
fn start_router(
    mut parts: ApiParts,
    local_addr: SocketAddr,
    jobs: &Jobs,
    shutdown: &Shutdown,
) -> Result<(Router, Job), InternalError> {
    let (intake, writer) = start_writer(&mut parts, jobs, shutdown)?;
    let state = ApiState::new(&parts, local_addr, shutdown.clone());
    Ok((router(parts, Arc::new(state), intake), writer))
}

/// Starts the thread that stores what the interface accepts.
fn start_writer(
    parts: &mut ApiParts,
    jobs: &Jobs,
    shutdown: &Shutdown,
) -> Result<(Intake, Job), InternalError> {
    let stored = parts.stored.clone();
    match parts.withdrawals.take() {
        None => {
            let store = BatchListStore { store: Arc::clone(&parts.intake_store), stored };
            let (queue, writer) = spawn_writer(parts, store, jobs, shutdown)?;
            Ok((Intake::Batches(queue), writer))
        }
        Some(withdrawals) => {
            let store = WithdrawalGroupStore { store: Arc::clone(&withdrawals.store), stored };
            let (queue, writer) = spawn_writer(parts, store, jobs, shutdown)?;
            Ok((Intake::Withdrawals(withdrawals, queue), writer))
        }
    }
}

fn spawn_writer<S>(
    parts: &ApiParts,
    store: S,
    jobs: &Jobs,
    shutdown: &Shutdown,
) -> Result<(QueueOf<S>, Job), InternalError>
where
    S: GroupStore<Item: Send, Answer: Send> + Send + 'static,
{
    let (queue, requests) = QueueOf::<S>::new(parts.options.write_queue_limit);
    let writer = GroupWriter::new(requests, store, parts.commit_progress.clone());
    let writer = jobs.thread("api-writer", shutdown.clone(), move || writer.run())?;
    Ok((queue, writer))
}
