use std::{sync::Arc, time::Duration};

use axum::Router;
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
    sync::{OwnedSemaphorePermit, Semaphore, watch},
    time::{sleep, timeout},
};
use tokio_io_timeout::TimeoutStream;

use crate::ApiOptions;

/// How long accepting rests when it fails: there are no file descriptors left, most likely.
const REST: Duration = Duration::from_millis(100);
/// What a connection may buffer. The longest address has 64 KiB, and the headers come on top.
const BUFFER: usize = 128 * 1024;

/// Accepts connections and serves them.
pub(crate) struct Server {
    pub(crate) listener: TcpListener,
    pub(crate) router: Router,
    pub(crate) options: ApiOptions,
    pub(crate) closing: watch::Receiver<bool>,
}

impl Server {
    /// Serves until the end begins; then lets requests that are under way finish, for a while.
    pub(crate) async fn run(self) {
        let graceful = GracefulShutdown::new();
        let places = Arc::new(Semaphore::new(self.options.connections));
        let mut closing = self.closing.clone();
        select! {
            () = self.accept(&places, &graceful) => {}
            _ = closing.wait_for(|closing| *closing) => {}
        }
        drop(self.listener);
        if timeout(self.options.drain_limit, graceful.shutdown()).await.is_err() {
            warn!("requests that did not end in time are cut off");
        }
    }

    /// A connection has a place before it is accepted; without one it waits in the backlog.
    async fn accept(&self, places: &Arc<Semaphore>, graceful: &GracefulShutdown) {
        while let Ok(place) = Arc::clone(places).acquire_owned().await {
            match self.listener.accept().await {
                Ok((stream, _)) => self.serve(stream, place, graceful.watcher()),
                Err(error) => {
                    warn!(error:%; "a connection could not be accepted");
                    sleep(REST).await;
                }
            }
        }
    }

    fn serve(&self, stream: TcpStream, place: OwnedSemaphorePermit, watcher: Watcher) {
        // Answers are small, and are not to wait for more.
        let _ = stream.set_nodelay(true);
        let mut stream = TimeoutStream::new(stream);
        stream.set_write_timeout(Some(self.options.answer_limit));
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(self.options.header_limit)
            .max_buf_size(BUFFER)
            .serve_connection(
                TokioIo::new(Box::pin(stream)),
                TowerToHyperService::new(self.router.clone()),
            );
        tokio::spawn(async move {
            let _place = place;
            // Clients come and go as they like.
            if let Err(error) = watcher.watch(connection).await {
                debug!(error:%; "a connection broke");
            }
        });
    }
}
