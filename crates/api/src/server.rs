use std::{sync::Arc, time::Duration};

use axum::Router;
use grid_batch_support::Shutdown;
use hyper::server::conn::http1;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::graceful::{GracefulShutdown, Watcher},
    service::TowerToHyperService,
};
use log::{debug, warn};
use tokio::{
    net::{TcpListener, TcpStream},
    select,
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{sleep, timeout},
};
use tokio_io_timeout::TimeoutStream;

use crate::ApiOptions;

/// The pause after a connection could not be accepted. The likely cause is a lack of file
/// descriptors.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);
/// The buffer of a connection. The longest URL has 64 KiB, and the headers come on top.
const BUFFER_SIZE: usize = 128 * 1024;

/// Accepts connections and serves them.
pub(crate) struct HttpServer {
    pub(crate) listener: TcpListener,
    pub(crate) router: Router,
    pub(crate) options: ApiOptions,
    pub(crate) shutdown: Shutdown,
}

impl HttpServer {
    /// Serves until the shutdown is requested, and then waits for requests in progress.
    pub(crate) async fn run(self) {
        let graceful = GracefulShutdown::new();
        let permits = Arc::new(Semaphore::new(self.options.max_connections));
        select! {
            () = self.accept(&permits, &graceful) => {}
            () = self.shutdown.requested() => {}
        }
        drop(self.listener);
        if timeout(self.options.drain_timeout, graceful.shutdown()).await.is_err() {
            warn!("closing connections whose requests did not finish within the drain timeout");
        }
    }

    /// Accepts connections. When all permits are in use, new connections wait in the backlog of the
    /// operating system.
    async fn accept(&self, permits: &Arc<Semaphore>, graceful: &GracefulShutdown) {
        while let Ok(permit) = Arc::clone(permits).acquire_owned().await {
            match self.listener.accept().await {
                Ok((stream, _)) => self.serve(stream, permit, graceful.watcher()),
                Err(error) => {
                    warn!(error:%; "accepting a connection failed");
                    sleep(ACCEPT_RETRY_DELAY).await;
                }
            }
        }
    }

    fn serve(&self, stream: TcpStream, permit: OwnedSemaphorePermit, watcher: Watcher) {
        // Answers are small and should be sent at once. Without this option they are only slower.
        let _ = stream.set_nodelay(true);
        let mut stream = TimeoutStream::new(stream);
        stream.set_write_timeout(Some(self.options.write_timeout));
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(self.options.header_timeout)
            .max_buf_size(BUFFER_SIZE)
            .serve_connection(
                TokioIo::new(Box::pin(stream)),
                TowerToHyperService::new(self.router.clone()),
            );
        tokio::spawn(async move {
            let _permit = permit;
            // A client may disconnect at any time, so this is no warning.
            if let Err(error) = watcher.watch(connection).await {
                debug!(error:%; "connection closed with an error");
            }
        });
    }
}
