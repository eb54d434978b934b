//! Websockets of clients of a ledger that a node of it serves.

use std::time::Duration;

use axum::{
    body::Body,
    http::{HeaderValue, Method, StatusCode, header, request::Parts},
    response::{IntoResponse, Response},
};
use futures_util::{SinkExt, StreamExt, stream::unfold};
use grid_batch_core::ledger::{ForwardedRequest, ForwardedSocket, SocketMessage, SocketMessages};
use grid_batch_support::Shutdown;
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use tokio::{
    select,
    sync::mpsc,
    time::{Instant, interval, timeout},
};
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{
        Message,
        handshake::derive_accept_key,
        protocol::{CloseFrame, Role, WebSocketConfig, frame::coding::CloseCode},
    },
};

use super::{Forwarding, forward::not_answered};
use crate::{
    access::Caller,
    http::{ApiError, ServerError},
    rate_limits::LimitError,
    state::{OpenConnection, WaitingListener},
};

/// The longest message of a client: a subscription.
const LONGEST: usize = 64 * 1024;
/// How long a client has to take the last message.
const CLOSE_LIMIT: Duration = Duration::from_secs(1);

impl Forwarding {
    pub(super) fn is_socket(&self, request: &Parts) -> bool {
        let is_websocket = |to: &HeaderValue| to.as_bytes().eq_ignore_ascii_case(b"websocket");
        request.method == Method::GET
            && request.headers.get(header::UPGRADE).is_some_and(is_websocket)
            && self.to.as_ref().is_some_and(|to| to.serves_socket(request.uri.path()))
    }

    /// Opens the websocket at a node first: if the node refuses it, so does this server.
    pub(super) async fn open_socket(
        &self,
        request: &mut Parts,
        forwarded: ForwardedRequest,
    ) -> Result<Response, ApiError> {
        let (Some(to), Some(upgrade), Some(key)) = (
            self.to.as_ref(),
            request.extensions.remove::<OnUpgrade>(),
            request.headers.get(header::SEC_WEBSOCKET_KEY).cloned(),
        ) else {
            let rule = "a websocket over HTTP/1.1 needs it";
            return Err(ApiError::invalid_value("Sec-WebSocket-Key", rule));
        };
        let caller = Caller::of(request)?.clone();
        let listener = self.api.listeners.begin(caller.key());
        let listener = listener.ok_or(LimitError::TooManyEventListeners)?;
        let place = self.places.acquire().await.map_err(|_| ServerError::Internal)?;
        // One message waits: a client that sends faster than the node reads is not read.
        let (messages, sent) = mpsc::channel(1);
        let opened = to.open_socket(forwarded, received(sent)).await.map_err(not_answered)?;
        drop(place);
        let node = match opened {
            ForwardedSocket::Open(node) => node,
            ForwardedSocket::Refused(status) => {
                let status = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_GATEWAY);
                return Ok(status.into_response());
            }
        };
        let socket = PassedSocket {
            node,
            messages,
            caller,
            ping_interval: self.api.options.ping_interval,
            shutdown: self.api.shutdown.clone(),
            _listener: listener,
            _open: request.extensions.get::<OpenConnection>().cloned(),
        };
        tokio::spawn(socket.run(upgrade));
        let headers = [
            (header::CONNECTION, "Upgrade".to_owned()),
            (header::UPGRADE, "websocket".to_owned()),
            (header::SEC_WEBSOCKET_ACCEPT, derive_accept_key(key.as_bytes())),
        ];
        Ok((StatusCode::SWITCHING_PROTOCOLS, headers, Body::empty()).into_response())
    }
}

fn received(sent: mpsc::Receiver<SocketMessage>) -> SocketMessages {
    unfold(sent, async |mut sent| Some((sent.recv().await?, sent))).boxed()
}

type ClientSocket = WebSocketStream<TokioIo<Upgraded>>;

/// A websocket between a client and a node.
struct PassedSocket {
    node: SocketMessages,
    messages: mpsc::Sender<SocketMessage>,
    caller: Caller,
    ping_interval: Duration,
    shutdown: Shutdown,
    _listener: WaitingListener,
    _open: Option<OpenConnection>,
}

impl PassedSocket {
    /// Passes messages on until one side ends, the token is not valid any more, or the server stops. Then the
    /// client connects again and goes on.
    async fn run(mut self, upgrade: OnUpgrade) {
        let Ok(upgraded) = upgrade.await else { return };
        let config = WebSocketConfig::default()
            .max_message_size(Some(LONGEST))
            .max_frame_size(Some(LONGEST));
        let io = TokioIo::new(upgraded);
        let mut client = WebSocketStream::from_raw_socket(io, Role::Server, Some(config)).await;
        let stopped = self.shutdown.clone();
        let end = select! {
            () = stopped.requested() => Some(away("the server stops")),
            end = self.pass(&mut client) => end,
        };
        let Some(frame) = end else { return };
        let closing = async {
            let _ = client.close(Some(frame)).await;
            while let Some(Ok(_)) = client.next().await {}
        };
        let _ = timeout(CLOSE_LIMIT, closing).await;
    }

    /// The last message to the client; `None` if the client is gone.
    async fn pass(&mut self, client: &mut ClientSocket) -> Option<CloseFrame> {
        let (mut ping, mut received_at) = (interval(self.ping_interval), Instant::now());
        let longest = self.ping_interval * 5 / 2;
        let (node, messages) = (&mut self.node, &self.messages);
        loop {
            // The client is read when the last message was taken for the node.
            let received = async {
                let place = messages.reserve().await;
                (place, client.next().await)
            };
            select! {
                message = node.next() => match to_client(message) {
                    Ok(message) => client.send(message).await.ok()?,
                    Err(end) => return Some(end),
                },
                (place, message) = received => {
                    received_at = Instant::now();
                    match (message?.ok()?, place) {
                        (Message::Text(text), Ok(place)) => {
                            place.send(SocketMessage::Text(text.to_string()));
                        }
                        (Message::Binary(bytes), Ok(place)) => {
                            place.send(SocketMessage::Binary(bytes.into()));
                        }
                        (Message::Close(_), _) => return Some(closed(CloseCode::Normal)),
                        // The node is gone; its messages end now.
                        (_, Err(_)) => return Some(away(NODE_GONE)),
                        (Message::Ping(_) | Message::Pong(_) | Message::Frame(_), Ok(_)) => {}
                    }
                }
                _ = ping.tick() => {
                    if received_at.elapsed() >= longest {
                        return None;
                    }
                    if !self.caller.is_still_allowed() {
                        return Some(closed(CloseCode::Policy));
                    }
                    client.send(Message::Ping(Vec::new().into())).await.ok()?;
                }
            }
        }
    }
}

const NODE_GONE: &str = "the node has closed the websocket";

/// What the client gets of the node, or the last message to it.
fn to_client(message: Option<SocketMessage>) -> Result<Message, CloseFrame> {
    match message {
        Some(SocketMessage::Text(text)) => Ok(Message::text(text)),
        Some(SocketMessage::Binary(bytes)) => Ok(Message::binary(bytes)),
        Some(SocketMessage::Close(Some((code, reason)))) => {
            Err(CloseFrame { code: code.into(), reason: reason.into() })
        }
        Some(SocketMessage::Close(None)) | None => Err(away(NODE_GONE)),
    }
}

fn closed(code: CloseCode) -> CloseFrame {
    CloseFrame { code, reason: "".into() }
}

fn away(reason: &'static str) -> CloseFrame {
    CloseFrame { code: CloseCode::Away, reason: reason.into() }
}
