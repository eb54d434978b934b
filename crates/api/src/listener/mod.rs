//! Where connections come in: TCP with or without TLS, and Unix sockets.

mod address;
mod stream;
mod tls;
mod unix_socket;

use std::{
    io,
    net::{IpAddr, SocketAddr, TcpListener},
    task::{Context, Poll},
};

use tokio::runtime::Handle;

pub use address::{ListenAddress, ListenAddressError};
pub(crate) use stream::AcceptedConnection;
pub use tls::{TlsCertificate, TlsError};
pub use unix_socket::UnixSocket;

use crate::forwarding::ConnectionPeer;

/// A listener of the interface.
#[derive(Debug)]
pub struct ApiListener(Kind);

#[derive(Debug)]
enum Kind {
    Tcp(TcpListener, Option<TlsCertificate>),
    Unix(UnixSocket),
}

impl ApiListener {
    /// Connections without encryption.
    pub fn tcp(listener: TcpListener) -> Self {
        Self(Kind::Tcp(listener, None))
    }

    /// Connections over TLS.
    pub fn tls(listener: TcpListener, certificate: TlsCertificate) -> Self {
        Self(Kind::Tcp(listener, Some(certificate)))
    }

    /// Connections of this machine.
    pub fn unix(socket: UnixSocket) -> Self {
        Self(Kind::Unix(socket))
    }

    pub(crate) fn local_addr(&self) -> Option<SocketAddr> {
        match &self.0 {
            Kind::Tcp(listener, _) => listener.local_addr().ok(),
            Kind::Unix(_) => None,
        }
    }

    /// Has the runtime tell of connections.
    pub(crate) fn register(self, runtime: &Handle) -> io::Result<RegisteredListener> {
        let _entered = runtime.enter();
        Ok(match self.0 {
            Kind::Tcp(listener, certificate) => {
                listener.set_nonblocking(true)?;
                let listener = tokio::net::TcpListener::from_std(listener)?;
                RegisteredListener::Tcp(listener, certificate)
            }
            Kind::Unix(socket) => {
                let listener = tokio::net::UnixListener::from_std(socket.try_clone()?)?;
                RegisteredListener::Unix { listener, _socket: socket }
            }
        })
    }
}

/// A listener whose connections a runtime reports.
#[derive(Debug)]
pub(crate) enum RegisteredListener {
    Tcp(tokio::net::TcpListener, Option<TlsCertificate>),
    Unix {
        listener: tokio::net::UnixListener,
        /// Removes the file when it is dropped.
        _socket: UnixSocket,
    },
}

impl RegisteredListener {
    pub(crate) fn poll_accept(
        &self,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<AcceptedConnection>> {
        match self {
            Self::Tcp(listener, certificate) => {
                listener.poll_accept(context).map_ok(|(stream, address)| {
                    // Answers are small and should be sent at once. Without this option they are only slower.
                    let _ = stream.set_nodelay(true);
                    let own_address = stream.local_addr().ok();
                    let peer = ConnectionPeer {
                        address: Some(address.ip().to_canonical()),
                        own_address: own_address.map(|address| IpAddr::to_canonical(&address.ip())),
                        is_encrypted: certificate.is_some(),
                    };
                    let tls = certificate.as_ref().map(TlsCertificate::acceptor);
                    AcceptedConnection { stream: Box::new(stream), tls, peer }
                })
            }
            Self::Unix { listener, .. } => listener.poll_accept(context).map_ok(|(stream, _)| {
                let peer = ConnectionPeer { address: None, own_address: None, is_encrypted: false };
                AcceptedConnection { stream: Box::new(stream), tls: None, peer }
            }),
        }
    }

    /// Its certificate, if it has one.
    pub(crate) fn certificate(&self) -> Option<&TlsCertificate> {
        match self {
            Self::Tcp(_, certificate) => certificate.as_ref(),
            Self::Unix { .. } => None,
        }
    }
}
