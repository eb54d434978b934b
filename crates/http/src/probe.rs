//! Round trips on an open websocket.

use bytes::Bytes;
use tokio::sync::watch;

/// Sends pings over an open websocket, while its stream of texts is read.
///
/// A pong follows everything that the server sent before. So after a round trip, all texts that the
/// server had sent until then were taken from the stream, and the server is the one that opened the
/// websocket: a server that restarted has forgotten its websockets.
#[derive(Debug, Clone)]
pub struct WebSocketProbe {
    /// The number of the last ping that was asked for.
    requested: watch::Sender<u64>,
    answered: watch::Receiver<u64>,
}

impl WebSocketProbe {
    /// Waits for the pong of a new ping. Returns whether it came; if not, the websocket has ended.
    ///
    /// It waits as long as the websocket is open and the stream is not read, so set a time limit.
    pub async fn round_trip(&self) -> bool {
        let mut number = 0;
        self.requested.send_modify(|last| {
            *last += 1;
            number = *last;
        });
        self.answered.clone().wait_for(|answered| *answered >= number).await.is_ok()
    }
}

/// The side of the websocket that sends the pings of a probe.
#[derive(Debug)]
pub(crate) struct ProbedSocket {
    requested: watch::Receiver<u64>,
    answered: watch::Sender<u64>,
}

impl ProbedSocket {
    pub(crate) fn new() -> (WebSocketProbe, Self) {
        let (requested_sender, requested) = watch::channel(0);
        let (answered, answered_receiver) = watch::channel(0);
        let probe = WebSocketProbe { requested: requested_sender, answered: answered_receiver };
        (probe, Self { requested, answered })
    }

    /// Waits until a probe asks for a ping.
    pub(crate) async fn ping_requested(&mut self) {
        if self.requested.changed().await.is_err() {
            // No probe is left.
            std::future::pending().await
        }
    }

    /// The payload of the next ping: its number.
    pub(crate) fn payload(&mut self) -> Bytes {
        Bytes::copy_from_slice(&self.requested.borrow_and_update().to_be_bytes())
    }

    /// Records a pong, which has the payload of its ping.
    pub(crate) fn receive_pong(&self, payload: &[u8]) {
        if let Ok(number) = payload.try_into() {
            let number = u64::from_be_bytes(number);
            self.answered.send_if_modified(|answered| {
                let is_later = number > *answered;
                *answered = number.max(*answered);
                is_later
            });
        }
    }
}
