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
use reqwest::{Client, Method, Response, StatusCode, Upgraded, Url};
use tokio::{pin, runtime::Handle, time::timeout};
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{
        Error as TungsteniteError, Message,
        error::ProtocolError::ResetWithoutClosingHandshake,
        handshake::{client::generate_key, derive_accept_key},
        protocol::{CloseFrame, Role, WebSocketConfig},
    },
};

use crate::{
    HttpClient, HttpError,
    error::find,
    probe::{ProbedSocket, WebSocketProbe},
    request::new_request,
    url::{WEBSOCKET_SCHEMES, origin_of, parse},
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
}

impl Default for WebSocketOptions {
    fn default() -> Self {
        Self {
            open_timeout: Duration::from_secs(10),
            silence_timeout: Duration::from_secs(75),
            max_text_bytes: 16 * 1024 * 1024,
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
    /// The texts of another client, whose websocket no probe can ping.
    pub fn new(texts: impl Stream<Item = Result<String, HttpError>> + Send + 'static) -> Self {
        Self { texts: texts.boxed(), probe: ProbedSocket::new().0 }
    }

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

type ClientWebSocket = WebSocketStream<Upgraded>;

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

impl HttpClient {
    /// Opens a websocket at an `http`, `https`, `ws` or `wss` URL and sends these texts.
    pub async fn open_websocket(
        &self,
        url: &str,
        headers: &[(&str, &str)],
        texts: &[&str],
        options: &WebSocketOptions,
    ) -> Result<TextFrames, HttpError> {
        let (socket, node) = self.open_in_time(url, headers, texts, options).await?;
        let (probe, probed) = ProbedSocket::new();
        let (texts, client) =
            (received_texts(socket, probed, options.silence_timeout), self.clone());
        let texts = texts.inspect(move |text| {
            let error = text.as_ref().err();
            error.into_iter().for_each(|error| client.report(&node, Err(error)));
        });
        Ok(TextFrames { texts: texts.boxed(), probe })
    }

    /// Opens a websocket for a client.
    pub(crate) async fn open_forwarded(
        &self,
        url: &str,
        headers: &[(&str, &str)],
        options: &WebSocketOptions,
    ) -> Result<ForwardedWebSocket, HttpError> {
        let (socket, _) = self.open_in_time(url, headers, &[], options).await?;
        Ok(ForwardedWebSocket { socket, silence_timeout: options.silence_timeout })
    }

    /// An open websocket, and the origin of its node.
    async fn open_in_time(
        &self,
        url: &str,
        headers: &[(&str, &str)],
        texts: &[&str],
        options: &WebSocketOptions,
    ) -> Result<(ClosedOnDrop, String), HttpError> {
        let limit = options.open_timeout;
        let url = websocket_url(url)?;
        let node = origin_of(&url);
        let opened = match self.connections.client(&url).await {
            Ok(client) => {
                let opening = open_socket(&client, url, headers, texts, options);
                timeout(limit, opening).await.unwrap_or_else(|_| {
                    Err(HttpError::TimedOut(format!("the websocket did not open within {limit:?}")))
                })
            }
            Err(error) => Err(error),
        };
        match opened {
            Ok(socket) => Ok((socket, node)),
            Err(error) => {
                self.report(&node, Err(&error));
                Err(error)
            }
        }
    }
}

async fn open_socket(
    client: &Client,
    url: Url,
    headers: &[(&str, &str)],
    texts: &[&str],
    options: &WebSocketOptions,
) -> Result<ClosedOnDrop, HttpError> {
    let key = generate_key();
    let handshake = [
        ("connection", "Upgrade"),
        ("upgrade", "websocket"),
        ("sec-websocket-version", "13"),
        ("sec-websocket-key", &key),
    ];
    let response = upgrade(client, url, &[headers, &handshake].concat()).await?;
    check_handshake(&response, &key)?;
    let stream = response.upgrade().await.map_err(|error| HttpError::from_reqwest(&error))?;
    let limit = Some(options.max_text_bytes);
    let config = WebSocketConfig::default()
        .max_message_size(limit)
        .max_frame_size(limit)
        .read_buffer_size(BUFFER_BYTES)
        .write_buffer_size(BUFFER_BYTES);
    let mut open = WebSocketStream::from_raw_socket(stream, Role::Client, Some(config)).await;
    for text in texts {
        open.send(Message::text(*text)).await.map_err(from_tungstenite)?;
    }
    Ok(ClosedOnDrop(Some(open)))
}

/// Sends the request for a websocket.
async fn upgrade(
    client: &Client,
    url: Url,
    headers: &[(&str, &str)],
) -> Result<Response, HttpError> {
    let request = new_request(client, Method::GET, url, headers, None)?;
    client.execute(request).await.map_err(|error| {
        match find::<hyper::Error>(&error).filter(|error| error.is_parse()) {
            Some(error) => HttpError::InvalidData(error.to_string()),
            None => HttpError::from_reqwest(&error),
        }
    })
}

/// The URL of the request that opens a websocket.
fn websocket_url(url: &str) -> Result<Url, HttpError> {
    let mut url = parse(url, WEBSOCKET_SCHEMES)?;
    let scheme = if matches!(url.scheme(), "https" | "wss") { "https" } else { "http" };
    // Schemes of the same kind replace each other.
    let _ = url.set_scheme(scheme);
    Ok(url)
}

fn check_handshake(response: &Response, key: &str) -> Result<(), HttpError> {
    if response.status() != StatusCode::SWITCHING_PROTOCOLS {
        return Err(HttpError::Refused { status: response.status().as_u16() });
    }
    let accepted = response.headers().get("sec-websocket-accept");
    if accepted
        .is_none_or(|accepted| accepted.as_bytes() != derive_accept_key(key.as_bytes()).as_bytes())
    {
        let reason = "the server did not accept the key of the websocket";
        return Err(HttpError::InvalidData(reason.to_owned()));
    }
    Ok(())
}

/// The size of a buffer of a websocket, which grows for a longer message. Most are short, and there may be
/// thousands of websockets; each buffer is cleared before a read.
const BUFFER_BYTES: usize = 1024;

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
        TungsteniteError::Protocol(ResetWithoutClosingHandshake) => {
            HttpError::NoResponse(error.to_string())
        }
        TungsteniteError::Protocol(_)
        | TungsteniteError::Capacity(_)
        | TungsteniteError::Utf8(_) => HttpError::InvalidData(error.to_string()),
        error => HttpError::NoResponse(error.to_string()),
    }
}
