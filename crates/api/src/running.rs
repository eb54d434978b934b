use std::{
    fmt, io,
    net::{SocketAddr, TcpListener},
    sync::Arc,
    thread::{self, JoinHandle},
    time::Duration,
};

use grid_batch_core::{InternalError, NewBatch, ShutdownHandle};
use tokio::{
    runtime::{Builder, Runtime},
    sync::{mpsc, watch},
};

use crate::{
    app::App,
    builder::Parts,
    intake::{Intake, Parcel},
    router::router,
    server::Server,
    writer::Writer,
};

/// How long the end waits for work that nobody waits for any more.
const LEFTOVERS: Duration = Duration::from_secs(1);

/// An interface that serves: the handle to end it by.
///
/// However it is ended, it accepts no more connections, lets requests that are under way finish up
/// to [`drain_limit`](crate::ApiOptions::drain_limit), and stores what was taken. Dropping the handle
/// begins this and does not wait for it.
pub struct RunningApi {
    local_addr: SocketAddr,
    closing: watch::Sender<bool>,
    server: JoinHandle<()>,
    writer: JoinHandle<()>,
}

impl RunningApi {
    /// The address that it serves at.
    pub fn local_addr(&self) -> SocketAddr {
        self.local_addr
    }
}

impl ShutdownHandle for RunningApi {
    fn signal_shutdown(&mut self) -> Result<(), InternalError> {
        self.closing.send_replace(true);
        Ok(())
    }

    /// Waits until it has ended; without a signal before, it is given now.
    fn wait_for_shutdown(mut self) -> Result<(), InternalError> {
        self.signal_shutdown()?;
        // The writer ends when the server has, for nobody can send to it then.
        let (server, writer) = (self.server.join(), self.writer.join());
        server.map_err(|_| InternalError::new("the interface's server panicked"))?;
        writer.map_err(|_| InternalError::new("the interface's writer panicked"))
    }
}

impl fmt::Debug for RunningApi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunningApi").field("local_addr", &self.local_addr).finish_non_exhaustive()
    }
}

pub(crate) fn start(parts: Parts, listener: TcpListener) -> Result<RunningApi, InternalError> {
    try_start(parts, listener)
        .map_err(|error| InternalError::from_source("the interface does not start", error))
}

fn try_start(parts: Parts, listener: TcpListener) -> io::Result<RunningApi> {
    let local_addr = listener.local_addr()?;
    let options = parts.options.clone();
    let (sender, queue) = mpsc::channel(options.queue_limit);
    let (closing, told_to_close) = watch::channel(false);

    // Should anything fail from here on, the sender is dropped, and the writer ends.
    let writer = start_writer(&parts, queue)?;
    let runtime = runtime(options.worker_threads)?;
    let app = App::new(parts, local_addr, Intake::new(sender), told_to_close.clone());
    let server = Server {
        listener: listen(listener, &runtime)?,
        router: router(app),
        options,
        closing: told_to_close,
    };
    let serve = move || {
        runtime.block_on(server.run());
        runtime.shutdown_timeout(LEFTOVERS);
    };
    Ok(RunningApi { local_addr, closing, server: spawn("api-server", serve)?, writer })
}

fn start_writer(parts: &Parts, queue: mpsc::Receiver<Parcel>) -> io::Result<JoinHandle<()>> {
    let store = parts.store.clone();
    let add = move |lists: &[&[NewBatch]]| store.add(lists);
    let writer = Writer::new(queue, add, Arc::clone(&parts.stored));
    spawn("api-writer", move || writer.run())
}

fn listen(listener: TcpListener, runtime: &Runtime) -> io::Result<tokio::net::TcpListener> {
    let _inside = runtime.enter();
    listener.set_nonblocking(true)?;
    tokio::net::TcpListener::from_std(listener)
}

fn runtime(worker_threads: usize) -> io::Result<Runtime> {
    Builder::new_multi_thread()
        .worker_threads(worker_threads)
        .thread_name("api-worker")
        .enable_all()
        .build()
}

fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    thread::Builder::new().name(name.to_owned()).spawn(run)
}
