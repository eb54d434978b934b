use std::{convert::Infallible, sync::Arc, time::Duration};

use axum::{
    Router,
    body::Body,
    response::{IntoResponse, Response},
};
use grid_batch_support::Shutdown;
use hyper::{
    Request,
    body::Incoming,
    server::conn::http1,
    service::{Service, service_fn},
};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::graceful::{GracefulShutdown, Watcher},
    service::TowerToHyperService,
};
use log::{debug, warn};
use tokio::{
    net::{TcpListener, TcpStream},
    select,
    time::{sleep, timeout},
};
use tokio_io_timeout::TimeoutStream;

use crate::{
    ApiOptions,
    connections::{ConnectionLimits, ConnectionPermit, Connections},
    health,
    http::{Dialect, discard_body},
};

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
        let connections = Connections::new(ConnectionLimits {
            connections: self.options.max_connections,
            requests_of_address: self.options.max_requests_of_address,
        });
        select! {
            () = self.accept(&connections, &graceful) => {}
            () = self.shutdown.requested() => {}
        }
        drop(self.listener);
        if timeout(self.options.drain_timeout, graceful.shutdown()).await.is_err() {
            warn!("closing connections whose requests did not finish within the drain timeout");
        }
    }

    async fn accept(&self, connections: &Connections, graceful: &GracefulShutdown) {
        loop {
            match self.listener.accept().await {
                Ok((stream, address)) => {
                    let permit = connections.acquire(address.ip().to_canonical()).await;
                    self.serve(stream, permit, graceful.watcher());
                }
                Err(error) => {
                    warn!(error:%; "accepting a connection failed");
                    sleep(ACCEPT_RETRY_DELAY).await;
                }
            }
        }
    }

    fn serve(&self, stream: TcpStream, permit: Arc<ConnectionPermit>, watcher: Watcher) {
        // Answers are small and should be sent at once. Without this option they are only slower.
        let _ = stream.set_nodelay(true);
        let mut stream = TimeoutStream::new(stream);
        stream.set_write_timeout(Some(self.options.write_timeout));
        let router = TowerToHyperService::new(self.router.clone());
        let serving = Arc::clone(&permit);
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(self.options.header_timeout)
            .max_buf_size(BUFFER_SIZE)
            .serve_connection(
                TokioIo::new(Box::pin(stream)),
                service_fn(move |request| answer(router.clone(), Arc::clone(&serving), request)),
            );
        tokio::spawn(async move {
            select! {
                result = watcher.watch(connection) => {
                    // A client may disconnect at any time, so this is no warning.
                    if let Err(error) = result {
                        debug!(error:%; "connection closed with an error");
                    }
                }
                () = permit.must_close() => debug!("idle connection closed for another one"),
            }
        });
    }
}

/// Answers a request, unless too many are in progress.
async fn answer(
    router: TowerToHyperService<Router>,
    permit: Arc<ConnectionPermit>,
    request: Request<Incoming>,
) -> Result<Response, Infallible> {
    let in_progress = match health::PATHS.contains(&request.uri().path()) {
        true => Ok(permit.begin_health_request()),
        false => permit.begin_request(),
    };
    match in_progress {
        Ok(_in_progress) => router.call(request).await,
        Err(error) => {
            let (request, body) = request.into_parts();
            discard_body(&request.headers, Body::new(body));
            Ok(Dialect::of(request.uri.path()).write(error.into_response()))
        }
    }
}
