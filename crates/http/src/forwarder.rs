//! Requests of clients that a node answers.

use futures_util::stream::try_unfold;
use grid_batch_core::ledger::{
    BodyParts, ForwardedRequest, ForwardedResponse, ForwardedSocket, PassThroughError,
    SocketMessages,
};

use crate::{HttpClient, HttpError, HttpOptions, StreamedResponse, WebSocketOptions, join};

/// The headers of a response that concern the client. All others are about the connection to the node, or
/// about the node.
const RESPONSE_HEADERS: [&str; 4] = ["content-type", "content-length", "retry-after", "etag"];

/// Forwards requests that only read. So they may be sent to a second node when the first does not answer.
#[derive(Debug, Clone)]
pub struct Forwarder {
    client: HttpClient,
    sockets: WebSocketOptions,
}

impl Forwarder {
    /// The most nodes that one request is sent to.
    const ATTEMPTS: usize = 2;

    /// Creates a forwarder with connections of its own.
    pub fn new(options: &HttpOptions) -> Result<Self, HttpError> {
        let sockets = WebSocketOptions {
            open_timeout: options.request_timeout,
            ..WebSocketOptions::default()
        };
        Ok(Self { client: HttpClient::new(options)?, sockets })
    }

    /// Opens a websocket, with these headers, at the first of the nodes that answers. It reads what the client
    /// sends while the messages of the node are read.
    pub async fn open_socket(
        &self,
        nodes: &[String],
        request: &ForwardedRequest,
        headers: &[(&str, &str)],
        sent: SocketMessages,
    ) -> Result<ForwardedSocket, PassThroughError> {
        let mut failure = PassThroughError::NoNode;
        for node in nodes.iter().take(Self::ATTEMPTS) {
            let opened = match join(node, request.target().trim_start_matches('/')) {
                Ok(url) => self.client.open_forwarded(&url, headers, &self.sockets).await,
                Err(error) => Err(error),
            };
            match opened {
                Ok(socket) => return Ok(ForwardedSocket::Open(socket.messages(sent))),
                Err(HttpError::Refused { status }) => return Ok(ForwardedSocket::Refused(status)),
                Err(error) => failure = to_error(error),
            }
        }
        Err(failure)
    }

    /// Sends the request, with these headers, to the first of the nodes that answers.
    pub async fn forward(
        &self,
        nodes: &[String],
        request: &ForwardedRequest,
        headers: &[(&str, &str)],
    ) -> Result<ForwardedResponse, PassThroughError> {
        let mut failure = PassThroughError::NoNode;
        for node in nodes.iter().take(Self::ATTEMPTS) {
            match self.ask(node, request, headers).await {
                Ok(response) => return Ok(to_forwarded(response)),
                Err(error) => failure = to_error(error),
            }
        }
        Err(failure)
    }

    async fn ask(
        &self,
        node: &str,
        request: &ForwardedRequest,
        headers: &[(&str, &str)],
    ) -> Result<StreamedResponse, HttpError> {
        let url = join(node, request.target().trim_start_matches('/'))?;
        self.client.open(&url, headers, request.body.clone()).await
    }
}

fn to_forwarded(response: StreamedResponse) -> ForwardedResponse {
    let header = |name: &'static str| Some((name, response.header(name)?.to_owned()));
    ForwardedResponse {
        status: response.status(),
        headers: RESPONSE_HEADERS.into_iter().filter_map(header).collect(),
        body: parts(response),
    }
}

fn parts(response: StreamedResponse) -> BodyParts {
    Box::pin(try_unfold(response, async |mut response| {
        let part = response.next_part().await.map_err(to_error)?;
        Ok(part.map(|part| (Vec::from(part), response)))
    }))
}

fn to_error(error: HttpError) -> PassThroughError {
    match error {
        HttpError::TimedOut(text) => PassThroughError::TimedOut(text),
        error => PassThroughError::Unavailable(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use std::{
        net::{TcpListener, TcpStream},
        thread::{self, JoinHandle},
        time::Duration,
    };

    use futures_util::{StreamExt, stream::pending};
    use grid_batch_core::ledger::SocketMessage;
    use tokio::time::timeout;
    use tokio_tungstenite::tungstenite::{Message, WebSocket, accept};

    use super::*;

    /// Longer than any answer takes.
    const LONG: Duration = Duration::from_secs(20);

    type ServerSocket = WebSocket<TcpStream>;

    /// The URL of a node that opens one websocket, and does this with it.
    fn node(run: fn(ServerSocket) -> ServerSocket) -> (String, JoinHandle<ServerSocket>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let node = thread::spawn(move || run(accept(listener.accept().unwrap().0).unwrap()));
        (url, node)
    }

    async fn open(forwarder: &Forwarder, nodes: &[&str]) -> SocketMessages {
        let nodes: Vec<String> = nodes.iter().copied().map(str::to_owned).collect();
        let request = ForwardedRequest::get("/subscriptions", None);
        match forwarder.open_socket(&nodes, &request, &[], pending().boxed()).await.unwrap() {
            ForwardedSocket::Open(messages) => messages,
            ForwardedSocket::Refused(status) => panic!("{status}"),
        }
    }

    fn forwarder(silence_timeout: Duration) -> Forwarder {
        let mut forwarder = Forwarder::new(&HttpOptions::default()).unwrap();
        forwarder.sockets.silence_timeout = silence_timeout;
        forwarder
    }

    #[tokio::test]
    async fn websocket_of_a_hung_node_ends() {
        let (url, hung) = node(|socket| socket);
        let mut messages = open(&forwarder(Duration::from_millis(200)), &[&url]).await;
        let _open = hung.join().unwrap();
        assert_eq!(timeout(LONG, messages.next()).await.unwrap(), None);
    }

    #[tokio::test]
    async fn websocket_of_a_node_that_answers_pings_stays_open() {
        let (url, _node) = node(|mut socket| {
            for _ in 0..3 {
                assert!(matches!(socket.read().unwrap(), Message::Ping(_)));
            }
            socket.send(Message::text("after three pings")).unwrap();
            socket
        });
        let mut messages = open(&forwarder(Duration::from_secs(2)), &[&url]).await;
        let text = SocketMessage::Text("after three pings".to_owned());
        assert_eq!(timeout(LONG, messages.next()).await.unwrap(), Some(text));
    }

    #[tokio::test]
    async fn second_node_opens_a_websocket_that_the_first_does_not() {
        let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let first = format!("http://{closed}");
        let (second, _node) = node(|mut socket| {
            socket.send(Message::text("second")).unwrap();
            socket
        });
        let mut messages = open(&forwarder(LONG), &[&first, &second]).await;
        let text = SocketMessage::Text("second".to_owned());
        assert_eq!(timeout(LONG, messages.next()).await.unwrap(), Some(text));
    }
}
