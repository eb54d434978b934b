//! An HTTP server for tests.

use std::sync::{Arc, Mutex};

use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
};

/// A local server that answers with a function and records the requests. It ends with the test's
/// runtime.
#[derive(Debug)]
pub(crate) struct TestServer {
    url: String,
    bodies: Arc<Mutex<Vec<String>>>,
}

impl TestServer {
    /// `answer` maps a request's body to a status and a body. The status may be followed by headers.
    pub(crate) async fn start<A>(answer: A) -> Self
    where
        A: Fn(&str) -> (String, String) + Send + Sync + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let bodies = Arc::new(Mutex::new(Vec::new()));
        let recorded = Arc::clone(&bodies);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                serve(stream, &answer, &recorded).await;
            }
        });
        Self { url, bodies }
    }

    /// Gives every request the same response.
    pub(crate) async fn always(status: &str, body: &str) -> Self {
        let answer = (status.to_owned(), body.to_owned());
        Self::start(move |_| answer.clone()).await
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// The bodies of the requests so far.
    pub(crate) fn bodies(&self) -> Vec<String> {
        self.bodies.lock().unwrap().clone()
    }
}

async fn serve<A>(stream: TcpStream, answer: &A, recorded: &Mutex<Vec<String>>)
where
    A: Fn(&str) -> (String, String),
{
    let mut stream = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).await.unwrap_or_default() == 0 {
            return;
        }
        let line = line.trim().to_lowercase();
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        if line.is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.unwrap();
    let body = String::from_utf8(body).unwrap();
    let (status, text) = answer(&body);
    recorded.lock().unwrap().push(body);
    let response = format!(
        "HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{text}",
        text.len()
    );
    stream.write_all(response.as_bytes()).await.unwrap();
}
