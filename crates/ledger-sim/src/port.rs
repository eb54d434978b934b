//! The port of a ledger, which stays reserved while nothing listens on it.

use std::{io, net::SocketAddr};

use tokio::{
    net::{TcpListener, TcpSocket, TcpStream},
    sync::{mpsc, oneshot},
};

const BACKLOG: u32 = 1024;

/// Closes and opens the port of a server.
#[derive(Debug)]
pub(crate) struct PortControl(mpsc::UnboundedSender<PortRequest>);

#[derive(Debug)]
struct PortRequest {
    is_open: bool,
    done: oneshot::Sender<()>,
}

/// The port, and the requests to close and open it.
pub(crate) struct Port {
    address: SocketAddr,
    socket: PortSocket,
    requests: mpsc::UnboundedReceiver<PortRequest>,
}

enum PortSocket {
    Listening(TcpListener),
    /// Bound but not listening, so that no other program gets the port.
    Closed(Option<TcpSocket>),
}

impl PortControl {
    pub(crate) fn new() -> (Self, impl FnOnce(TcpListener) -> io::Result<Port>) {
        let (sender, requests) = mpsc::unbounded_channel();
        let port = |listener: TcpListener| {
            let address = listener.local_addr()?;
            Ok(Port { address, socket: PortSocket::Listening(listener), requests })
        };
        (Self(sender), port)
    }

    /// Refuses or accepts connections from now on. Must not be called on a thread of a runtime.
    pub(crate) fn set_open(&self, is_open: bool) {
        let (done, is_done) = oneshot::channel();
        // An error means that the server has ended, so that nothing listens.
        if self.0.send(PortRequest { is_open, done }).is_ok() {
            let _ = is_done.blocking_recv();
        }
    }
}

impl Port {
    /// The next connection. Requests to close and open the port are served meanwhile.
    pub(crate) async fn accept(&mut self) -> io::Result<TcpStream> {
        loop {
            let request = match &self.socket {
                PortSocket::Listening(listener) => tokio::select! {
                    accepted = listener.accept() => return accepted.map(|(stream, _)| stream),
                    request = self.requests.recv() => request,
                },
                PortSocket::Closed(_) => self.requests.recv().await,
            };
            let Some(request) = request else { return std::future::pending().await };
            self.set_open(request.is_open)?;
            // The caller may have gone.
            let _ = request.done.send(());
        }
    }

    fn set_open(&mut self, is_open: bool) -> io::Result<()> {
        match (&mut self.socket, is_open) {
            (PortSocket::Listening(_), false) => {
                // A listening port cannot be bound again, so this ends before that begins.
                self.socket = PortSocket::Closed(None);
                self.socket = PortSocket::Closed(Some(bind(self.address)?));
            }
            (PortSocket::Closed(bound), true) => {
                let bound = bound.take().map_or_else(|| bind(self.address), Ok)?;
                self.socket = PortSocket::Listening(bound.listen(BACKLOG)?);
            }
            _ => {}
        }
        Ok(())
    }
}

fn bind(address: SocketAddr) -> io::Result<TcpSocket> {
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    Ok(socket)
}
