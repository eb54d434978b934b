use std::convert::Infallible;

use tokio::sync::mpsc;

/// The server stops after the last of these was dropped. Each connection keeps one, also when it has become a
/// websocket.
#[derive(Debug, Clone)]
pub(crate) struct OpenConnection(
    #[expect(dead_code, reason = "it is only dropped")] mpsc::Sender<Infallible>,
);

impl OpenConnection {
    /// The receiver ends when all connections have. It receives nothing.
    pub(crate) fn channel() -> (Self, mpsc::Receiver<Infallible>) {
        let (open, closed) = mpsc::channel(1);
        (Self(open), closed)
    }
}
