use std::{
    convert::Infallible,
    future::{pending, poll_fn},
    io,
    pin::{Pin, pin},
    sync::Arc,
    task::Poll,
    time::Duration,
};

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
    service::TowerToHyperService,
};
use log::{debug, warn};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    select,
    task::spawn_blocking,
    time::{interval, sleep, timeout},
};
use tokio_io_timeout::TimeoutStream;

use crate::{
    ApiOptions, TlsCertificate, TrustedProxies,
    connections::{ConnectionLimits, ConnectionPermit, Connections},
    forwarding::ConnectionPeer,
    health,
    http::{ErrorDialect, counted_address, discard_body},
    listener::{AcceptedConnection, RegisteredListener},
    state::OpenConnection,
};

/// The pause after a connection could not be accepted. The likely cause is a lack of file
/// descriptors.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);
/// The buffer of a connection. The longest URL has 64 KiB, and the headers come on top.
const BUFFER_SIZE: usize = 128 * 1024;
/// How often the files of certificates are looked at.
const CERTIFICATE_INTERVAL: Duration = Duration::from_secs(5);

/// Accepts connections and serves them.
pub(crate) struct HttpServer {
    pub(crate) listeners: Vec<RegisteredListener>,
    pub(crate) router: Router,
    pub(crate) options: ApiOptions,
    pub(crate) proxies: Arc<TrustedProxies>,
    pub(crate) shutdown: Shutdown,
    /// Ends what the drain timeout has left.
    pub(crate) closing: Shutdown,
}

impl HttpServer {
    /// Serves until the shutdown is requested, and then waits for requests in progress.
    pub(crate) async fn run(self) {
        let connections = Connections::new(ConnectionLimits {
            connections: self.options.max_connections,
            requests_of_address: self.options.max_requests_of_address,
        });
        let certificates: Vec<TlsCertificate> =
            self.listeners.iter().filter_map(RegisteredListener::certificate).cloned().collect();
        let (open, mut closed) = OpenConnection::channel();
        select! {
            () = self.accept(&connections, &open) => {}
            () = watch(certificates) => {}
            () = self.shutdown.requested() => {}
        }
        drop(self.listeners);
        drop(open);
        if timeout(self.options.drain_timeout, closed.recv()).await.is_err() {
            warn!("closing connections whose requests did not finish within the drain timeout");
        }
        self.closing.request();
    }

    async fn accept(&self, connections: &Connections, open: &OpenConnection) {
        let mut first = 0;
        loop {
            match self.accept_any(first).await {
                Ok(accepted) => {
                    let address = counted_address(accepted.peer.address);
                    let permit = connections.acquire(address).await;
                    self.serve(accepted, permit, open.clone());
                }
                Err(error) => {
                    warn!(error:%; "accepting a connection failed");
                    sleep(ACCEPT_RETRY_DELAY).await;
                }
            }
            // No listener waits for another one.
            first += 1;
        }
    }

    /// The next connection of any listener.
    async fn accept_any(&self, first: usize) -> io::Result<AcceptedConnection> {
        let count = self.listeners.len();
        poll_fn(|context| {
            let ready =
                (0..count).map(|at| &self.listeners[(first + at) % count]).find_map(|listener| {
                    match listener.poll_accept(context) {
                        Poll::Ready(accepted) => Some(accepted),
                        Poll::Pending => None,
                    }
                });
            ready.map_or(Poll::Pending, Poll::Ready)
        })
        .await
    }

    fn serve(
        &self,
        accepted: AcceptedConnection,
        permit: Arc<ConnectionPermit>,
        open: OpenConnection,
    ) {
        let AcceptedConnection { stream, tls, peer } = accepted;
        let mut stream = TimeoutStream::new(stream);
        stream.set_write_timeout(Some(self.options.write_timeout));
        let stream = Box::pin(stream);
        let connection = Connection {
            router: TowerToHyperService::new(self.router.clone()),
            proxies: Arc::clone(&self.proxies),
            header_timeout: self.options.header_timeout,
            permit: Arc::clone(&permit),
            peer,
            shutdown: self.shutdown.clone(),
            open,
        };
        let handshake_timeout = self.options.tls_handshake_timeout;
        let (shutdown, closing) = (self.shutdown.clone(), self.closing.clone());
        tokio::spawn(async move {
            let serve = async move {
                let Some(tls) = tls else { return connection.serve(stream).await };
                select! {
                    accepted = timeout(handshake_timeout, tls.accept(stream)) => match accepted {
                        Ok(Ok(stream)) => connection.serve(Box::pin(stream)).await,
                        // Any client may begin with something else.
                        Ok(Err(error)) => debug!(error:%; "a TLS handshake failed"),
                        Err(_) => debug!("a TLS handshake did not end in time"),
                    },
                    () = shutdown.requested() => {}
                }
            };
            select! {
                () = serve => {}
                () = permit.must_close() => debug!("idle connection closed for another one"),
                () = closing.requested() => {}
            }
        });
    }
}

/// Has changed certificates read.
async fn watch(certificates: Vec<TlsCertificate>) {
    if certificates.is_empty() {
        return pending().await;
    }
    let mut interval = interval(CERTIFICATE_INTERVAL);
    loop {
        interval.tick().await;
        for certificate in &certificates {
            let certificate = TlsCertificate::clone(certificate);
            // It logs what is wrong.
            let _ = spawn_blocking(move || certificate.read_if_changed()).await;
        }
    }
}

/// What the requests of a connection share.
struct Connection {
    router: TowerToHyperService<Router>,
    proxies: Arc<TrustedProxies>,
    header_timeout: Duration,
    permit: Arc<ConnectionPermit>,
    peer: ConnectionPeer,
    shutdown: Shutdown,
    open: OpenConnection,
}

impl Connection {
    async fn serve<S>(self, stream: Pin<Box<S>>)
    where
        S: AsyncRead + AsyncWrite + Send + 'static,
    {
        let (header_timeout, shutdown) = (self.header_timeout, self.shutdown.clone());
        let this = Arc::new(self);
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(header_timeout)
            .max_buf_size(BUFFER_SIZE)
            .serve_connection(
                TokioIo::new(stream),
                service_fn(move |request| answer(Arc::clone(&this), request)),
            )
            .with_upgrades();
        let mut connection = pin!(connection);
        let ended = select! {
            ended = connection.as_mut() => ended,
            () = shutdown.requested() => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        };
        // A client may disconnect at any time, so this is no warning.
        if let Err(error) = ended {
            debug!(error:%; "connection closed with an error");
        }
    }
}

/// Answers a request, unless too many are in progress.
async fn answer(
    connection: Arc<Connection>,
    request: Request<Incoming>,
) -> Result<Response, Infallible> {
    let (mut parts, body) = request.into_parts();
    let client = connection.proxies.client(&parts, connection.peer);
    let permit = &connection.permit;
    let in_progress = if health::PATHS.contains(&parts.uri.path()) {
        Ok(permit.begin_health_request())
    } else {
        permit.begin_request(client.counted_address())
    };
    match in_progress {
        Ok(_in_progress) => {
            parts.extensions.insert(client);
            parts.extensions.insert(connection.open.clone());
            connection.router.call(Request::from_parts(parts, body)).await
        }
        Err(error) => {
            discard_body(&parts.headers, Body::new(body));
            Ok(ErrorDialect::of(parts.uri.path()).write(error.into_response()))
        }
    }
}
