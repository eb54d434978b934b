use std::{
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use futures_util::{SinkExt, Stream, StreamExt, stream::BoxStream};
use tokio::{net::TcpStream, time::timeout};
use tokio_tungstenite::{
    MaybeTlsStream, WebSocketStream, connect_async_with_config,
    tungstenite::{
        Error as SocketError, Message,
        client::IntoClientRequest,
        http::{HeaderName, HeaderValue},
        protocol::WebSocketConfig,
    },
};

use crate::HttpError;

/// How a socket is held open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SocketOptions {
    /// The longest that opening it may take.
    pub open_limit: Duration,
    /// A socket on which nothing comes for so long, not even a ping, is broken.
    pub silence_limit: Duration,
    /// So many bytes may be in one frame.
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

/// Opens a socket at an address of `http`, `https`, `ws` or `wss`, and says these texts first.
pub async fn open_socket(
    url: &str,
    headers: &[(&str, &str)],
    first: &[&str],
    options: &SocketOptions,
) -> Result<TextFrames, HttpError> {
    choose_cryptography();
    let request = request(url, headers)?;
    let config = WebSocketConfig::default()
        .max_message_size(Some(options.frame_limit))
        .max_frame_size(Some(options.frame_limit));
    let opening = async {
        let (mut socket, _) =
            connect_async_with_config(request, Some(config), true).await.map_err(of_opening)?;
        for text in first {
            socket.send(Message::text(*text)).await.map_err(of_socket)?;
        }
        Ok(socket)
    };
    let socket = timeout(options.open_limit, opening).await.map_err(|_| {
        HttpError::NoAnswer(format!("the socket did not open within {:?}", options.open_limit))
    })??;
    Ok(TextFrames(texts(socket, options.silence_limit).boxed()))
}

/// The process has one source of cryptography; where nobody chose one before, it is `ring`.
pub(crate) fn choose_cryptography() {
    // An error says that there is one already.
    let _ = rustls::crypto::ring::default_provider().install_default();
}

fn request(
    url: &str,
    headers: &[(&str, &str)],
) -> Result<tokio_tungstenite::tungstenite::handshake::client::Request, HttpError> {
    let unusable = |error: &dyn std::fmt::Display| HttpError::Request(error.to_string());
    let url = match url.strip_prefix("http") {
        Some(rest) => format!("ws{rest}"),
        None => url.to_owned(),
    };
    let mut request = url.into_client_request().map_err(|error| unusable(&error))?;
    for (name, value) in headers {
        let name: HeaderName = name.parse().map_err(|error| unusable(&error))?;
        let value: HeaderValue = value.parse().map_err(|error| unusable(&error))?;
        request.headers_mut().insert(name, value);
    }
    Ok(request)
}

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

/// The socket's texts. Pings are answered by reading on.
fn texts(
    socket: Socket,
    silence: Duration,
) -> impl Stream<Item = Result<String, HttpError>> + Send {
    futures_util::stream::unfold(Some(socket), move |socket| async move {
        let mut socket = socket?;
        loop {
            let error = match timeout(silence, socket.next()).await {
                Ok(Some(Ok(Message::Text(text)))) => {
                    return Some((Ok(text.as_str().to_owned()), Some(socket)));
                }
                Ok(Some(Ok(Message::Ping(_) | Message::Pong(_)))) => continue,
                Ok(Some(Ok(Message::Binary(_) | Message::Frame(_)))) => {
                    HttpError::Socket("it sent bytes where text was to come".to_owned())
                }
                Ok(Some(Ok(Message::Close(frame)))) => {
                    let reason = frame.map_or_else(|| "no reason".to_owned(), |f| f.to_string());
                    HttpError::NoAnswer(format!("the socket was closed: {reason}"))
                }
                Ok(Some(Err(error))) => of_socket(error),
                Ok(None) => HttpError::NoAnswer("the socket ended".to_owned()),
                Err(_) => HttpError::NoAnswer(format!("nothing came for {silence:?}")),
            };
            return Some((Err(error), None));
        }
    })
}

fn of_opening(error: SocketError) -> HttpError {
    match error {
        SocketError::Http(answer) => {
            HttpError::Socket(format!("it was refused with HTTP status {}", answer.status()))
        }
        SocketError::Io(error) => HttpError::NotSent(error.to_string()),
        error => of_socket(error),
    }
}

fn of_socket(error: SocketError) -> HttpError {
    match error {
        SocketError::Url(error) => HttpError::Request(error.to_string()),
        SocketError::Capacity(error) => HttpError::Socket(error.to_string()),
        error => HttpError::NoAnswer(error.to_string()),
    }
}
