//! A node that answers as it is told, byte for byte.

use std::{
    io,
    sync::{Arc, Mutex},
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

#[derive(Debug, Clone)]
pub struct Request {
    pub head: String,
    pub body: Vec<u8>,
}

impl Request {
    /// Method and target.
    pub fn line(&self) -> &str {
        self.head.lines().next().unwrap().trim_end_matches(" HTTP/1.1")
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.head.lines().filter_map(|line| line.split_once(": "));
        headers.find(|(other, _)| other.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }
}

/// What a node does with a request.
pub enum Conduct {
    /// Sends these bytes, and listens on.
    HttpResponse(Vec<u8>),
    /// Sends these bytes, and hangs up.
    Break(Vec<u8>),
    /// Does nothing.
    Silence,
}

pub struct Node {
    pub url: String,
    requests: Arc<Mutex<Vec<Request>>>,
}

impl Node {
    pub async fn start(conduct: impl Fn(&Request) -> Conduct + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (noted, conduct) = (Arc::clone(&requests), Arc::new(conduct));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (noted, conduct) = (Arc::clone(&noted), Arc::clone(&conduct));
                tokio::spawn(async move { serve(stream, &noted, &*conduct).await });
            }
        });
        Self { url, requests }
    }

    /// One that always answers so.
    pub async fn that_says(bytes: impl Into<Vec<u8>>) -> Self {
        let bytes = bytes.into();
        Self::start(move |_| Conduct::HttpResponse(bytes.clone())).await
    }

    pub fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }
}

async fn serve(
    mut stream: TcpStream,
    noted: &Mutex<Vec<Request>>,
    conduct: &(dyn Fn(&Request) -> Conduct + Send + Sync),
) -> io::Result<()> {
    loop {
        let request = read(&mut stream).await?;
        noted.lock().unwrap().push(request.clone());
        match conduct(&request) {
            Conduct::HttpResponse(bytes) => stream.write_all(&bytes).await?,
            Conduct::Break(bytes) => return stream.write_all(&bytes).await,
            Conduct::Silence => std::future::pending().await,
        }
    }
}

async fn read(stream: &mut TcpStream) -> io::Result<Request> {
    let mut bytes = Vec::new();
    while !bytes.ends_with(b"\r\n\r\n") {
        bytes.push(stream.read_u8().await?);
    }
    let head = String::from_utf8(bytes).unwrap();
    let mut request = Request { head, body: Vec::new() };
    let length = request.header("content-length").map_or(0, |length| length.parse().unwrap());
    request.body.resize(length, 0);
    stream.read_exact(&mut request.body).await?;
    Ok(request)
}

/// An answer of this status and body.
pub fn answer(status: u16, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 {status} Words\r\ncontent-length: {length}\r\n\r\n{body}").into_bytes()
}
