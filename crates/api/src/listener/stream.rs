use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpStream, UnixStream},
};
use tokio_rustls::TlsAcceptor;

use crate::forwarding::ConnectionPeer;

/// A connection that was accepted.
pub(crate) struct AcceptedConnection {
    pub(crate) stream: Stream,
    /// What TLS begins with, if the listener has a certificate.
    pub(crate) tls: Option<TlsAcceptor>,
    pub(crate) peer: ConnectionPeer,
}

/// A connection of either kind.
#[derive(Debug)]
pub(crate) enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

macro_rules! on_either {
    ($stream:expr, $inner:ident => $body:expr) => {
        match $stream.get_mut() {
            Stream::Tcp($inner) => $body,
            Stream::Unix($inner) => $body,
        }
    };
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        on_either!(self, inner => Pin::new(inner).poll_read(context, buffer))
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        on_either!(self, inner => Pin::new(inner).poll_write(context, bytes))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        on_either!(self, inner => Pin::new(inner).poll_write_vectored(context, bytes))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        on_either!(self, inner => Pin::new(inner).poll_flush(context))
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        on_either!(self, inner => Pin::new(inner).poll_shutdown(context))
    }
}
