//! Servers that do with each connection what a test tells them to.

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

/// A server until it is dropped.
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

/// A request that has come whole.
#[derive(Debug, Clone)]
pub struct Request {
    pub head: String,
    pub body: String,
}

/// A client that has connected.
pub struct Peer {
    pub stream: TcpStream,
    /// How many came before.
    pub number: usize,
    log: Arc<Log>,
}

impl Server {
    /// Does this with every connection, one after the other.
    pub async fn new<F>(conduct: impl Fn(Peer) -> F + Send + 'static) -> Self
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
                tokio::spawn(conduct(Peer { stream, number, log: logged.clone() }));
            }
        });
        Self { address, log, task }
    }

    /// Reads a request of each connection, says this, and hangs up.
    pub async fn says(answer: impl Into<Vec<u8>>) -> Self {
        let answer: Arc<[u8]> = answer.into().into();
        Self::new(move |mut peer| {
            let answer = answer.clone();
            async move {
                peer.request().await;
                peer.say(&answer).await;
            }
        })
        .await
    }

    /// Answers every request of every connection with this.
    pub async fn keeps_saying(answer: &'static str) -> Self {
        Self::new(move |mut peer| async move {
            while peer.request().await.is_some() {
                peer.say(answer.as_bytes()).await;
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
    /// The next request, if one comes whole.
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

    /// Says this, unless the client has gone.
    pub async fn say(&mut self, bytes: &[u8]) {
        let _ = self.stream.write_all(bytes).await;
    }

    /// Says this until the client has had enough.
    pub async fn say_for_ever(&mut self, bytes: &[u8]) {
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

pub fn client_that_waits(request_limit: Duration) -> HttpClient {
    HttpClient::new(&HttpOptions { request_limit, ..HttpOptions::default() }).unwrap()
}

/// An address that nobody listens on.
pub async fn nobody() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap()
}

/// An address where connecting never ends, as long as what is beside it lives.
pub async fn nobody_at_home() -> (SocketAddr, impl Sized) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = socket.listen(0).unwrap();
    let address = listener.local_addr().unwrap();
    let mut at_the_door = Vec::new();
    while let Ok(connected) = timeout(Duration::from_millis(100), TcpStream::connect(address)).await
    {
        at_the_door.push(connected.unwrap());
    }
    (address, (listener, at_the_door))
}
