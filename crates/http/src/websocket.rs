use std::{
    pin::Pin,
    task::{Context, Poll, Waker},
    time::Duration,
};

use futures_util::{
    SinkExt, Stream, StreamExt,
    future::{Either, select},
    stream::{BoxStream, unfold},
};
use grid_batch_core::ledger::{SocketMessage, SocketMessages};
use grid_batch_nodes::NodePool;
use tokio::{pin, runtime::Handle, time::timeout};
use tokio_tungstenite::{
    WebSocketStream, client_async_with_config,
    tungstenite::{
        Error as TungsteniteError, Message,
        client::IntoClientRequest,
        error::ProtocolError::{HandshakeIncomplete, ResetWithoutClosingHandshake},
        handshake::client::Request,
        protocol::{CloseFrame, WebSocketConfig},
    },
};

use crate::{
    HttpError,
    connect::{AllowedAddresses, connect},
    probe::{ProbedSocket, WebSocketProbe},
    request_target::RequestTarget,
    stream::MaybeTlsStream,
    url::WEBSOCKET_SCHEMES,
};

/// Timeouts and limits of websockets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebSocketOptions {
    /// The maximum duration of opening a websocket.
    pub open_timeout: Duration,
    /// A websocket that receives nothing for this long counts as broken. A ping is sent at half of
    /// it.
    pub silence_timeout: Duration,
    /// The maximum length of one text.
    pub max_text_bytes: usize,
    /// What all websockets report to: which nodes do not answer.
    pub nodes: NodePool,
}

impl Default for WebSocketOptions {
    fn default() -> Self {
        Self {
            open_timeout: Duration::from_secs(10),
            silence_timeout: Duration::from_secs(75),
            max_text_bytes: 16 * 1024 * 1024,
            nodes: NodePool::default(),
        }
    }
}

/// The texts that a websocket receives. The stream ends after the first error.
///
/// Dropping it sends a Close frame. In a runtime, a task waits up to a second for the server's answer.
pub struct TextFrames {
    texts: BoxStream<'static, Result<String, HttpError>>,
    probe: WebSocketProbe,
}

impl TextFrames {
    /// Sends pings over this websocket.
    pub fn probe(&self) -> WebSocketProbe {
        self.probe.clone()
    }
}

impl Stream for TextFrames {
    type Item = Result<String, HttpError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.texts.as_mut().poll_next(context)
    }
}

type ClientWebSocket = WebSocketStream<MaybeTlsStream>;

/// A websocket that is closed with a Close frame when it is dropped: a server may take a client that
/// disappears for a failure of its own.
struct ClosedOnDrop(Option<ClientWebSocket>);

/// How long a dropped websocket waits for the server's Close frame.
const CLOSE_LIMIT: Duration = Duration::from_secs(1);

impl Drop for ClosedOnDrop {
    /// Sends the frame without waiting, because the runtime may be about to end. If it is not, a task
    /// keeps the connection until the server has answered.
    fn drop(&mut self) {
        let Some(mut socket) = self.0.take() else { return };
        let mut context = Context::from_waker(Waker::noop());
        // Errors mean that the connection has ended already.
        let _ = socket.start_send_unpin(Message::Close(None));
        let _ = socket.poll_flush_unpin(&mut context);
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(timeout(CLOSE_LIMIT, async move {
                let _ = socket.flush().await;
                while let Some(Ok(_)) = socket.next().await {}
            }));
        }
    }
}

/// Opens a websocket at an `http`, `https`, `ws` or `wss` URL and sends these texts.
pub async fn open_websocket(
    url: &str,
    headers: &[(&str, &str)],
    texts: &[&str],
    options: &WebSocketOptions,
) -> Result<TextFrames, HttpError> {
    let target = RequestTarget::new(url, WEBSOCKET_SCHEMES, headers)?;
    let report = reporter(&target, options);
    let socket = open_in_time(target, texts, options).await.inspect_err(&report)?;
    let (probe, probed) = ProbedSocket::new();
    let texts = received_texts(socket, probed, options.silence_timeout);
    let texts = texts.inspect(move |text| text.as_ref().err().into_iter().for_each(&report));
    Ok(TextFrames { texts: texts.boxed(), probe })
}

/// Reports that the node does not answer.
fn reporter(
    target: &RequestTarget,
    options: &WebSocketOptions,
) -> impl Fn(&HttpError) + Send + Sync + use<> {
    let (node, nodes) = (target.url.http_origin(), options.nodes.clone());
    move |error| {
        if error.is_no_answer() {
            nodes.failed(&node, &error.to_string());
        }
    }
}

/// Opens a websocket for a client.
pub(crate) async fn open_forwarded(
    url: &str,
    headers: &[(&str, &str)],
    options: &WebSocketOptions,
) -> Result<ForwardedWebSocket, HttpError> {
    let target = RequestTarget::new(url, WEBSOCKET_SCHEMES, headers)?;
    let report = reporter(&target, options);
    let socket = open_in_time(target, &[], options).await.inspect_err(report)?;
    Ok(ForwardedWebSocket { socket, silence_timeout: options.silence_timeout })
}

/// A websocket at a node whose messages are those of a client.
pub(crate) struct ForwardedWebSocket {
    socket: ClosedOnDrop,
    silence_timeout: Duration,
}

impl ForwardedWebSocket {
    /// The messages of the node. Those of the client are passed on while they are read, until it ends.
    pub(crate) fn messages(self, sent: SocketMessages) -> SocketMessages {
        unfold((self, sent), async |(mut this, mut sent)| {
            let message = this.next(&mut sent).await?;
            Some((message, (this, sent)))
        })
        .boxed()
    }

    async fn next(&mut self, sent: &mut SocketMessages) -> Option<SocketMessage> {
        let socket = self.socket.0.as_mut()?;
        let mut was_pinged = false;
        loop {
            let step = timeout(self.silence_timeout / 2, select(socket.next(), sent.next()));
            let message = match step.await {
                Ok(Either::Left((received, _))) => match received?.ok()? {
                    Message::Text(text) => return Some(SocketMessage::Text(text.to_string())),
                    Message::Binary(bytes) => return Some(SocketMessage::Binary(bytes.into())),
                    Message::Close(frame) => {
                        let reason = |it: CloseFrame| (it.code.into(), it.reason.to_string());
                        return Some(SocketMessage::Close(frame.map(reason)));
                    }
                    Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => {
                        was_pinged = false;
                        continue;
                    }
                },
                Ok(Either::Right((message, _))) => match message? {
                    SocketMessage::Text(text) => Message::text(text),
                    SocketMessage::Binary(bytes) => Message::binary(bytes),
                    SocketMessage::Close(_) => return None,
                },
                Err(_) if was_pinged => return None,
                Err(_) => {
                    was_pinged = true;
                    Message::Ping(Vec::new().into())
                }
            };
            timeout(self.silence_timeout, socket.send(message)).await.ok()?.ok()?;
        }
    }
}

async fn open_in_time(
    target: RequestTarget,
    texts: &[&str],
    options: &WebSocketOptions,
) -> Result<ClosedOnDrop, HttpError> {
    let limit = options.open_timeout;
    let opening = timeout(limit, open(target, texts, options)).await;
    opening.unwrap_or_else(|_| {
        Err(HttpError::TimedOut(format!("the websocket did not open within {limit:?}")))
    })
}

async fn open(
    target: RequestTarget,
    texts: &[&str],
    options: &WebSocketOptions,
) -> Result<ClosedOnDrop, HttpError> {
    let stream = connect(&target.url, options.open_timeout, &AllowedAddresses::default()).await?;
    let limit = Some(options.max_text_bytes);
    let config = WebSocketConfig::default()
        .max_message_size(limit)
        .max_frame_size(limit)
        .read_buffer_size(BUFFER_BYTES)
        .write_buffer_size(BUFFER_BYTES);
    let (socket, _) = client_async_with_config(handshake_request(target)?, stream, Some(config))
        .await
        .map_err(from_tungstenite)?;
    let mut socket = ClosedOnDrop(Some(socket));
    if let Some(open) = &mut socket.0 {
        for text in texts {
            open.send(Message::text(*text)).await.map_err(from_tungstenite)?;
        }
    }
    Ok(socket)
}

/// The size of a buffer of a websocket, which grows for a longer message. Most are short, and there may be
/// a thousand websockets; each buffer is cleared before a read.
const BUFFER_BYTES: usize = 4 * 1024;

fn handshake_request(target: RequestTarget) -> Result<Request, HttpError> {
    let RequestTarget { url, headers } = target;
    let scheme = if url.is_encrypted() { "wss" } else { "ws" };
    let url = format!("{scheme}://{}{}", url.authority(), url.path_and_query);
    let mut request = url.into_client_request().map_err(from_tungstenite)?;
    request.headers_mut().extend(headers);
    Ok(request)
}

/// The texts until the websocket breaks.
fn received_texts(
    socket: ClosedOnDrop,
    probed: ProbedSocket,
    silence_timeout: Duration,
) -> impl Stream<Item = Result<String, HttpError>> + Send {
    unfold(Some((socket, probed)), move |open| async move {
        let (mut socket, mut probed) = open?;
        match next_text(socket.0.as_mut()?, &mut probed, silence_timeout).await {
            Ok(text) => Some((Ok(text), Some((socket, probed)))),
            Err(error) => Some((Err(error), None)),
        }
    })
}

async fn next_text(
    socket: &mut ClientWebSocket,
    probed: &mut ProbedSocket,
    silence_timeout: Duration,
) -> Result<String, HttpError> {
    loop {
        match next_message(socket, probed, silence_timeout).await? {
            Message::Text(text) => return Ok(text.as_str().to_owned()),
            // The next read answers a ping.
            Message::Ping(_) => {}
            Message::Pong(payload) => probed.receive_pong(&payload),
            Message::Close(frame) => return Err(closed(frame)),
            Message::Binary(_) | Message::Frame(_) => {
                let reason = "the server sent a binary message; only text is expected";
                return Err(HttpError::InvalidData(reason.to_owned()));
            }
        }
    }
}

/// The next message. Sends a ping after half of the timeout, since not every ledger sends pings, or
/// when a probe asks for one.
async fn next_message(
    socket: &mut ClientWebSocket,
    probed: &mut ProbedSocket,
    silence_timeout: Duration,
) -> Result<Message, HttpError> {
    if let Some(message) = receive_before_ping(socket, probed, silence_timeout / 2).await {
        return message;
    }
    let receive_after_ping = async {
        socket.send(Message::Ping(probed.payload())).await.map_err(from_tungstenite)?;
        receive(socket).await
    };
    match timeout(silence_timeout / 2, receive_after_ping).await {
        Ok(message) => message,
        Err(_) => Err(HttpError::NoResponse(format!("nothing received for {silence_timeout:?}"))),
    }
}

/// The next message; `None` if it is time to send a ping.
async fn receive_before_ping(
    socket: &mut ClientWebSocket,
    probed: &mut ProbedSocket,
    limit: Duration,
) -> Option<Result<Message, HttpError>> {
    let receiving = timeout(limit, receive(socket));
    let ping_requested = probed.ping_requested();
    pin!(receiving, ping_requested);
    match select(receiving, ping_requested).await {
        Either::Left((message, _)) => message.ok(),
        Either::Right(_) => None,
    }
}

async fn receive(socket: &mut ClientWebSocket) -> Result<Message, HttpError> {
    match socket.next().await {
        Some(message) => message.map_err(from_tungstenite),
        None => Err(HttpError::NoResponse("the websocket ended".to_owned())),
    }
}

fn closed(frame: Option<CloseFrame>) -> HttpError {
    let reason = frame.map_or_else(|| "no reason".to_owned(), |frame| frame.to_string());
    HttpError::NoResponse(format!("the server closed the websocket: {reason}"))
}

fn from_tungstenite(error: TungsteniteError) -> HttpError {
    match error {
        TungsteniteError::Http(response) => {
            HttpError::Refused { status: response.status().as_u16() }
        }
        TungsteniteError::Url(_) | TungsteniteError::HttpFormat(_) => {
            HttpError::InvalidRequest(error.to_string())
        }
        TungsteniteError::Protocol(HandshakeIncomplete | ResetWithoutClosingHandshake) => {
            HttpError::NoResponse(error.to_string())
        }
        TungsteniteError::Protocol(_)
        | TungsteniteError::Capacity(_)
        | TungsteniteError::Utf8(_) => HttpError::InvalidData(error.to_string()),
        error => HttpError::NoResponse(error.to_string()),
    }
}
