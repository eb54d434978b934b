//! A TCP server that handles each connection as a test defines it.

use std::{
    future::{Future, pending},
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use grid_batch_http::{HttpClient, HttpOptions};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpSocket, TcpStream},
    task::JoinHandle,
    time::timeout,
};

pub const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// A server that runs until it is dropped.
pub struct Server {
    pub address: SocketAddr,
    log: Arc<Log>,
    task: JoinHandle<()>,
}

#[derive(Default)]
struct Log {
    connections: Mutex<usize>,
    requests: Mutex<Vec<Request>>,
}

/// A request that was received completely.
#[derive(Debug, Clone)]
pub struct Request {
    pub head: String,
    pub body: String,
}

/// The connection of one client.
pub struct Peer {
    pub stream: TcpStream,
    /// The number of earlier connections.
    pub number: usize,
    log: Arc<Log>,
}

impl Server {
    /// Starts a server that handles every connection with this function.
    pub async fn new<F>(handle: impl Fn(Peer) -> F + Send + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let log = Arc::new(Log::default());
        let logged = log.clone();
        let task = tokio::spawn(async move {
            for number in 0.. {
                let (stream, _) = listener.accept().await.unwrap();
                *logged.connections.lock().unwrap() += 1;
                tokio::spawn(handle(Peer { stream, number, log: logged.clone() }));
            }
        });
        Self { address, log, task }
    }

    /// A server that reads one request of each connection, sends this and disconnects.
    pub async fn responding_once(response: impl Into<Vec<u8>>) -> Self {
        let response: Arc<[u8]> = response.into().into();
        Self::new(move |mut peer| {
            let response = response.clone();
            async move {
                peer.request().await;
                peer.send(&response).await;
            }
        })
        .await
    }

    /// A server that sends this for every request of every connection.
    pub async fn responding(response: &'static str) -> Self {
        Self::new(move |mut peer| async move {
            while peer.request().await.is_some() {
                peer.send(response.as_bytes()).await;
            }
        })
        .await
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn connections(&self) -> usize {
        *self.log.connections.lock().unwrap()
    }

    pub fn requests(&self) -> Vec<Request> {
        self.log.requests.lock().unwrap().clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Peer {
    /// The next request, if it arrives completely.
    pub async fn request(&mut self) -> Option<Request> {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(self.stream.read_u8().await.ok()?);
        }
        let head = String::from_utf8(head).unwrap().to_ascii_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
        self.stream.read_exact(&mut body).await.ok()?;
        let request = Request { head, body: String::from_utf8(body).unwrap() };
        self.log.requests.lock().unwrap().push(request.clone());
        Some(request)
    }

    /// Sends this, unless the client has disconnected.
    pub async fn send(&mut self, bytes: &[u8]) {
        let _ = self.stream.write_all(bytes).await;
    }

    /// Sends this again and again until the client disconnects.
    pub async fn send_until_closed(&mut self, bytes: &[u8]) {
        while self.stream.write_all(bytes).await.is_ok() {}
    }

    pub fn reset(self) {
        self.stream.set_zero_linger().unwrap();
    }

    pub async fn stall(self) {
        pending::<()>().await;
    }
}

pub fn client() -> HttpClient {
    HttpClient::new(&HttpOptions::default()).unwrap()
}

pub fn client_with_timeout(request_timeout: Duration) -> HttpClient {
    HttpClient::new(&HttpOptions { request_timeout, ..HttpOptions::default() }).unwrap()
}

/// An address on which no server listens.
pub async fn unused_address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap()
}

/// An address to which connecting never completes, until the other value is dropped.
pub async fn address_that_never_accepts() -> (SocketAddr, impl Sized) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = socket.listen(0).unwrap();
    let address = listener.local_addr().unwrap();
    let mut connections = Vec::new();
    while let Ok(connected) = timeout(Duration::from_millis(100), TcpStream::connect(address)).await
    {
        connections.push(connected.unwrap());
    }
    (address, (listener, connections))
}
