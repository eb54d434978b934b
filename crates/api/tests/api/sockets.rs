//! Websockets of clients that a node of the ledger serves.

use std::{
    io::ErrorKind,
    iter,
    net::TcpStream,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
        mpsc::{RecvTimeoutError, channel},
    },
    time::{Duration, Instant},
};

use futures_util::{StreamExt, future::ready, stream};
use grid_batch_api::{
    AccessControl, AccessMode, AccessOptions, AccessToken, ApiOptions, ShutdownHandle,
};
use grid_batch_core::SystemClock;
use grid_batch_core::ledger::{ForwardedSocket, PassThroughError, SocketMessage, SocketMessages};
use grid_batch_core::mocks::MockLedger;
use grid_batch_core::operators::OperatorRequest;
use grid_batch_core::tokens::{AccessScope, NewToken, TokenStore};
use grid_batch_support::lock;
use tokio_tungstenite::tungstenite::{
    Error, HandshakeError, Message, WebSocket,
    client::{IntoClientRequest, client},
    protocol::{CloseFrame, frame::coding::CloseCode},
};

use crate::{client::Response, test_server::TestServer};

const PATH: &str = "/subscriptions";
/// Longer than any answer takes.
const LONG: Duration = Duration::from_secs(20);

type Socket = WebSocket<TcpStream>;

type Opened = Result<ForwardedSocket, PassThroughError>;

/// A ledger whose node answers the messages of clients like this.
fn ledger(node: impl Fn(SocketMessages) -> Opened + Send + Sync + 'static) -> MockLedger {
    let mut ledger = MockLedger::new();
    ledger.expect_serves().return_const(false);
    ledger.expect_serves_socket().returning(|path| path == PATH);
    ledger.expect_open_socket().returning(move |_, sent| Box::pin(ready(node(sent))));
    ledger
}

/// A server with such a ledger.
fn server(
    options: ApiOptions,
    node: impl Fn(SocketMessages) -> Opened + Send + Sync + 'static,
) -> TestServer {
    let ledger = Arc::new(ledger(node));
    TestServer::with(|builder, _| builder.with_options(options).with_pass_through(ledger))
}

/// A node that sends back what it gets.
fn echo() -> TestServer {
    server(ApiOptions::default(), |sent| Ok(ForwardedSocket::Open(sent)))
}

fn connect(server: &TestServer) -> Result<Socket, Error> {
    connect_with(server, &[])
}

fn connect_with(server: &TestServer, headers: &[(&'static str, &str)]) -> Result<Socket, Error> {
    let stream = TcpStream::connect(server.address).unwrap();
    stream.set_read_timeout(Some(LONG)).unwrap();
    let mut request = format!("ws://grid.test{PATH}").into_client_request().unwrap();
    for (name, value) in headers {
        request.headers_mut().insert(*name, value.parse().unwrap());
    }
    match client(request, stream) {
        Ok((socket, _)) => Ok(socket),
        Err(HandshakeError::Failure(error)) => Err(error),
        Err(HandshakeError::Interrupted(_)) => panic!("no answer in time"),
    }
}

/// The next message that is no ping.
fn next(socket: &mut Socket) -> Result<Message, Error> {
    loop {
        match socket.read()? {
            Message::Ping(_) | Message::Pong(_) => {}
            message => return Ok(message),
        }
    }
}

/// The code of the Close frame that comes next.
fn close_code(socket: &mut Socket) -> u16 {
    match next(socket).unwrap() {
        Message::Close(Some(frame)) => frame.code.into(),
        message => panic!("{message:?}"),
    }
}

/// Closes the websocket, and waits for the answer.
fn close(socket: &mut Socket) {
    let frame = CloseFrame { code: CloseCode::Normal, reason: "".into() };
    socket.close(Some(frame)).unwrap();
    assert_eq!(close_code(socket), 1000);
}

fn status(refused: Result<Socket, Error>) -> (u16, String) {
    match refused.unwrap_err() {
        Error::Http(response) => {
            let body = response.body().clone().unwrap_or_default();
            (response.status().as_u16(), String::from_utf8(body).unwrap())
        }
        error => panic!("{error}"),
    }
}

#[test]
fn messages_sent_at_once_arrive_in_order() {
    let server = echo();
    let mut socket = connect(&server).unwrap();
    let sent: Vec<_> = (0..100)
        .map(|number| match number % 2 {
            0 => Message::text(number.to_string()),
            _ => Message::binary(vec![number]),
        })
        .collect();
    sent.iter().for_each(|message| socket.write(message.clone()).unwrap());
    socket.flush().unwrap();
    for message in sent {
        assert_eq!(next(&mut socket).unwrap(), message);
    }
    close(&mut socket);
}

#[test]
fn end_of_the_node_is_sent_to_the_client() {
    for (last, code) in [
        (None, 1001),
        (Some(SocketMessage::Close(None)), 1001),
        (Some(SocketMessage::Close(Some((1011, "error".to_owned())))), 1011),
    ] {
        let server = server(ApiOptions::default(), move |_| {
            Ok(ForwardedSocket::Open(stream::iter(last.clone()).boxed()))
        });
        assert_eq!(close_code(&mut connect(&server).unwrap()), code);
    }
}

#[test]
fn node_learns_that_its_client_has_ended() {
    let (ended, end) = channel::<()>();
    let ended = Mutex::new(Some(ended));
    let server = server(ApiOptions::default(), move |_| {
        let ended = lock(&ended).take();
        let pending = stream::pending().map(move |message: SocketMessage| {
            let _kept = &ended;
            message
        });
        Ok(ForwardedSocket::Open(pending.boxed()))
    });
    // It sends no Close frame.
    drop(connect(&server).unwrap());
    assert_eq!(end.recv_timeout(LONG), Err(RecvTimeoutError::Disconnected));
}

#[test]
fn refusals_of_nodes_are_passed_on() {
    let refusing = server(ApiOptions::default(), |_| Ok(ForwardedSocket::Refused(401)));
    assert_eq!(status(connect(&refusing)).0, 401);
    for (error, code) in [
        (PassThroughError::NoNode, "18"),
        (PassThroughError::Unavailable("secret".to_owned()), "18"),
        (PassThroughError::TimedOut("secret".to_owned()), "17"),
    ] {
        let failing = server(ApiOptions::default(), move |_| Err(error.clone()));
        let (status, body) = status(connect(&failing));
        assert_eq!(status, 503);
        assert!(body.contains(&format!("\"code\":{code}")) && !body.contains("secret"), "{body}");
    }
}

#[test]
fn open_websockets_are_limited() {
    let server = echo();
    let mut open: Vec<Socket> = (0..16).map(|_| connect(&server).unwrap()).collect();
    let (code, body) = status(connect(&server));
    assert!(code == 503 && body.contains("1082"), "{code} {body}");
    close(&mut open[0]);
    let deadline = Instant::now() + LONG;
    while connect(&server).is_err() {
        assert!(Instant::now() < deadline, "no place is free again");
    }
}

#[test]
fn other_requests_for_websockets_are_refused() {
    let server = echo();
    let get = |headers: &[&str]| -> Response { server.client().request("GET", PATH, headers, b"") };
    assert_eq!(get(&[]).error(), (404, 1001));
    let without_key = ["connection: upgrade", "upgrade: websocket"];
    assert_eq!(get(&without_key).error(), (400, 1023));
}

#[test]
fn stop_of_the_server_closes_websockets() {
    let mut server = echo();
    let mut socket = connect(&server).unwrap();
    server.api.signal_shutdown().unwrap();
    assert_eq!(close_code(&mut socket), 1001);
    drop(socket);
    server.api.wait_for_shutdown().unwrap();
}

#[test]
fn client_that_does_not_read_is_disconnected() {
    let taken = Arc::new(AtomicUsize::new(0));
    let options = ApiOptions { write_timeout: Duration::from_millis(300), ..ApiOptions::default() };
    let counted = Arc::clone(&taken);
    let (ended, end) = channel::<()>();
    let ended = Mutex::new(Some(ended));
    let server = server(options, move |_| {
        let ended = lock(&ended).take();
        let counted = Arc::clone(&counted);
        let messages = stream::repeat_with(move || {
            let _kept = &ended;
            counted.fetch_add(1, Ordering::Relaxed);
            SocketMessage::Binary(vec![0; 1024 * 1024])
        });
        Ok(ForwardedSocket::Open(messages.boxed()))
    });
    let mut socket = connect(&server).unwrap();
    assert_eq!(end.recv_timeout(LONG), Err(RecvTimeoutError::Disconnected));
    let taken = taken.load(Ordering::Relaxed);
    // What the buffers of the two sockets take.
    assert!(taken < 64, "{taken} MiB were read of the node");
    let error = iter::repeat_with(|| socket.read()).find_map(Result::err).unwrap();
    assert!(
        !matches!(&error, Error::Io(error) if error.kind() == ErrorKind::WouldBlock),
        "{error}"
    );
}

#[test]
fn client_that_answers_no_pings_is_disconnected() {
    let (ended, end) = channel::<()>();
    let ended = Mutex::new(Some(ended));
    let options = ApiOptions { ping_interval: Duration::from_millis(100), ..ApiOptions::default() };
    let server = server(options, move |_| {
        let ended = lock(&ended).take();
        let pending = stream::pending().map(move |message: SocketMessage| {
            let _kept = &ended;
            message
        });
        Ok(ForwardedSocket::Open(pending.boxed()))
    });
    // It answers pings only while it reads.
    let _socket = connect(&server).unwrap();
    assert_eq!(end.recv_timeout(LONG), Err(RecvTimeoutError::Disconnected));
}

#[test]
fn client_that_answers_pings_stays_connected() {
    let options = ApiOptions { ping_interval: Duration::from_secs(1), ..ApiOptions::default() };
    let server = server(options, |sent| Ok(ForwardedSocket::Open(sent)));
    let mut socket = connect(&server).unwrap();
    // The last one is sent later than a client without answers is disconnected.
    for _ in 0..4 {
        assert!(matches!(socket.read().unwrap(), Message::Ping(_)));
    }
    socket.send(Message::text("still here")).unwrap();
    assert_eq!(next(&mut socket).unwrap(), Message::text("still here"));
}

#[test]
fn websocket_ends_when_its_token_is_revoked() {
    let options = AccessOptions { mode: AccessMode::Tokens, ..AccessOptions::default() };
    let control = AccessControl::new(options, Arc::new(SystemClock));
    let access = control.clone();
    let server = TestServer::with(|builder, _| {
        let options = ApiOptions { ping_interval: Duration::from_secs(1), ..ApiOptions::default() };
        builder
            .with_options(options)
            .with_access(access)
            .with_pass_through(Arc::new(ledger(|sent| Ok(ForwardedSocket::Open(sent)))))
    });
    let token = AccessToken::generate().unwrap();
    let new = NewToken {
        id: token.id(),
        name: "a client".to_owned(),
        secret_hash: token.secret_hash(),
        scopes: AccessScope::ALL.into_iter().collect(),
        services: vec!["*".to_owned()],
        may_send: Vec::new(),
        expires_at: None,
    };
    assert!(server.store.create_token(&new, &OperatorRequest::program()).unwrap());
    control.set_tokens(server.store.unrevoked_tokens().unwrap());
    let header = format!("Bearer {}", token.secret());
    let mut socket = connect_with(&server, &[("authorization", &header)]).unwrap();
    assert!(matches!(socket.read().unwrap(), Message::Ping(_)));
    control.set_tokens(Vec::new());
    assert_eq!(close_code(&mut socket), 1008);
}
