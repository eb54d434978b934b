use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsAcceptor;

use crate::forwarding::ConnectionPeer;

/// A connection that was accepted.
pub(crate) struct AcceptedConnection {
    pub(crate) stream: Box<dyn Stream>,
    /// What TLS begins with, if the listener has a certificate.
    pub(crate) tls: Option<TlsAcceptor>,
    pub(crate) peer: ConnectionPeer,
}

/// The bytes of a connection of any kind.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}
