use std::{
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use futures_util::{
    SinkExt, Stream, StreamExt,
    stream::{BoxStream, unfold},
};
use reqwest::Url;
use tokio::{net::TcpStream, time::timeout};
use tokio_tungstenite::{
    MaybeTlsStream, WebSocketStream, client_async_tls_with_config,
    tungstenite::{
        Error as SocketError, Message,
        client::IntoClientRequest,
        error::ProtocolError::{HandshakeIncomplete, ResetWithoutClosingHandshake},
        handshake::client::Request,
        protocol::{CloseFrame, WebSocketConfig},
    },
};

use crate::{HttpError, address::HTTP_AND_SOCKETS, target::Target, tls::choose_cryptography};

/// How a socket is held open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SocketOptions {
    /// The longest that opening it may take.
    pub open_limit: Duration,
    /// A socket on which nothing comes for so long is broken. The other side is asked for a sign of
    /// life at half of it.
    pub silence_limit: Duration,
    /// So many bytes may be in one text.
    pub frame_limit: usize,
}

impl Default for SocketOptions {
    fn default() -> Self {
        Self {
            open_limit: Duration::from_secs(10),
            silence_limit: Duration::from_secs(75),
            frame_limit: 16 * 1024 * 1024,
        }
    }
}

/// The texts that come over a socket. After an error there are no more.
pub struct TextFrames(BoxStream<'static, Result<String, HttpError>>);

impl Stream for TextFrames {
    type Item = Result<String, HttpError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.as_mut().poll_next(context)
    }
}

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

/// Opens a socket at an address of `http`, `https`, `ws` or `wss`, and says these texts first.
pub async fn open_socket(
    url: &str,
    headers: &[(&str, &str)],
    first: &[&str],
    options: &SocketOptions,
) -> Result<TextFrames, HttpError> {
    let target = Target::new(url, HTTP_AND_SOCKETS, headers)?;
    let SocketOptions { open_limit, silence_limit, frame_limit } = *options;
    let socket = timeout(open_limit, open(target, first, frame_limit)).await.map_err(|_| {
        HttpError::NoAnswer(format!("the socket did not open within {open_limit:?}"))
    })??;
    Ok(TextFrames(texts(socket, silence_limit).boxed()))
}

async fn open(target: Target, first: &[&str], limit: usize) -> Result<Socket, HttpError> {
    choose_cryptography();
    let stream = connect(&target.url).await?;
    let config =
        WebSocketConfig::default().max_message_size(Some(limit)).max_frame_size(Some(limit));
    let (mut socket, _) =
        client_async_tls_with_config(handshake(target)?, stream, Some(config), None)
            .await
            .map_err(of_socket)?;
    for text in first {
        socket.send(Message::text(*text)).await.map_err(of_socket)?;
    }
    Ok(socket)
}

async fn connect(url: &Url) -> Result<TcpStream, HttpError> {
    let host = url.host_str().unwrap_or_default();
    let port = url.port_or_known_default().unwrap_or_default();
    let stream = TcpStream::connect(format!("{host}:{port}"))
        .await
        .map_err(|error| HttpError::NotSent(error.to_string()))?;
    stream.set_nodelay(true).map_err(|error| HttpError::NotSent(error.to_string()))?;
    Ok(stream)
}

fn handshake(target: Target) -> Result<Request, HttpError> {
    let url = target.url.as_str();
    let url = url.strip_prefix("http").map_or_else(|| url.to_owned(), |rest| format!("ws{rest}"));
    let mut request = url.into_client_request().map_err(of_socket)?;
    request.headers_mut().extend(target.headers);
    Ok(request)
}

/// The socket's texts until it breaks.
fn texts(
    socket: Socket,
    silence: Duration,
) -> impl Stream<Item = Result<String, HttpError>> + Send {
    unfold(Some(socket), move |socket| async move {
        let mut socket = socket?;
        match next_text(&mut socket, silence).await {
            Ok(text) => Some((Ok(text), Some(socket))),
            Err(error) => Some((Err(error), None)),
        }
    })
}

async fn next_text(socket: &mut Socket, silence: Duration) -> Result<String, HttpError> {
    loop {
        match next_message(socket, silence).await? {
            Message::Text(text) => return Ok(text.as_str().to_owned()),
            // Reading on answers a ping.
            Message::Ping(_) | Message::Pong(_) => {}
            Message::Close(frame) => return Err(closed(frame)),
            Message::Binary(_) | Message::Frame(_) => {
                let text = "it sent bytes where text was to come";
                return Err(HttpError::Socket(text.to_owned()));
            }
        }
    }
}

/// What comes next. A side that has been silent for half of the limit is asked whether it lives:
/// not every ledger says so by itself.
async fn next_message(socket: &mut Socket, silence: Duration) -> Result<Message, HttpError> {
    if let Ok(message) = timeout(silence / 2, receive(socket)).await {
        return message;
    }
    let asking = async {
        socket.send(Message::Ping(Bytes::new())).await.map_err(of_socket)?;
        receive(socket).await
    };
    match timeout(silence / 2, asking).await {
        Ok(message) => message,
        Err(_) => Err(HttpError::NoAnswer(format!("nothing came for {silence:?}"))),
    }
}

async fn receive(socket: &mut Socket) -> Result<Message, HttpError> {
    match socket.next().await {
        Some(message) => message.map_err(of_socket),
        None => Err(HttpError::NoAnswer("the socket ended".to_owned())),
    }
}

fn closed(frame: Option<CloseFrame>) -> HttpError {
    let reason = frame.map_or_else(|| "no reason".to_owned(), |frame| frame.to_string());
    HttpError::NoAnswer(format!("the socket was closed: {reason}"))
}

fn of_socket(error: SocketError) -> HttpError {
    match error {
        SocketError::Http(answer) => HttpError::Refused { status: answer.status().as_u16() },
        SocketError::Url(_) | SocketError::HttpFormat(_) => HttpError::Request(error.to_string()),
        SocketError::Protocol(HandshakeIncomplete | ResetWithoutClosingHandshake) => {
            HttpError::NoAnswer(error.to_string())
        }
        SocketError::Protocol(_) | SocketError::Capacity(_) | SocketError::Utf8(_) => {
            HttpError::Socket(error.to_string())
        }
        error => HttpError::NoAnswer(error.to_string()),
    }
}
