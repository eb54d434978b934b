//! The client: connections that send one request after the other.

use std::{
    collections::HashMap,
    io,
    net::SocketAddr,
    rc::Rc,
    time::{Duration, Instant, SystemTime},
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    runtime::Builder,
    task::{LocalSet, spawn_local},
    time::sleep,
};

use crate::requests::Request;

/// The pause after a request that the server cannot take now.
const RETRY_DELAY: Duration = Duration::from_millis(20);

/// What the client has seen.
#[derive(Debug, Default)]
pub struct LoadResult {
    /// The time from each request to its `202`, in order of length.
    pub latencies: Vec<Duration>,
    /// When each batch was acknowledged.
    pub acknowledged: HashMap<String, SystemTime>,
    /// How many requests were answered 429 or 503, and sent again.
    pub refused: usize,
}

/// Sends all requests over this many connections. Connection n sends every n-th request. With several
/// servers, each connection is to one of them.
pub fn send_all(
    servers: &[SocketAddr],
    connections: usize,
    requests: Vec<Request>,
) -> io::Result<LoadResult> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let tasks = LocalSet::new();
    let requests = Rc::new(requests);
    tasks.block_on(&runtime, async move {
        let clients: Vec<_> = (0..connections)
            .map(|number| {
                let address = servers[number % servers.len()];
                spawn_local(send_every_nth(address, requests.clone(), number, connections))
            })
            .collect();
        let mut all = LoadResult::default();
        for client in clients {
            let result = client.await.map_err(io::Error::other)??;
            all.latencies.extend(result.latencies);
            all.acknowledged.extend(result.acknowledged);
            all.refused += result.refused;
        }
        all.latencies.sort();
        Ok(all)
    })
}

async fn send_every_nth(
    address: SocketAddr,
    requests: Rc<Vec<Request>>,
    first: usize,
    step: usize,
) -> io::Result<LoadResult> {
    let mut stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let mut result = LoadResult::default();
    for request in requests.iter().skip(first).step_by(step) {
        let bytes = serialize(request);
        loop {
            let started = Instant::now();
            stream.write_all(&bytes).await?;
            let (status, body) = read_response(&mut stream).await?;
            match status {
                202 => {
                    result.latencies.push(started.elapsed());
                    let now = SystemTime::now();
                    result
                        .acknowledged
                        .extend(request.batch_ids.iter().cloned().map(|id| (id, now)));
                    break;
                }
                429 | 503 => {
                    result.refused += 1;
                    sleep(RETRY_DELAY).await;
                }
                _ => {
                    return Err(io::Error::other(format!(
                        "the server answered status {status}: {body}"
                    )));
                }
            }
        }
    }
    Ok(result)
}

fn serialize(request: &Request) -> Vec<u8> {
    let (service, length) = (&request.service, request.body.len());
    let head = format!(
        "POST /batches?service_id={service} HTTP/1.1\r\nhost: localhost\r\n\
         content-type: application/octet-stream\r\ncontent-length: {length}\r\n\r\n"
    );
    [head.as_bytes(), &request.body].concat()
}

/// Reads one response with a known length.
pub(crate) async fn read_response(stream: &mut TcpStream) -> io::Result<(u16, String)> {
    let mut input = Vec::with_capacity(1024);
    loop {
        if stream.read_buf(&mut input).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if let Some(response) = parse_response(&input) {
            return Ok(response);
        }
    }
}

fn parse_response(input: &[u8]) -> Option<(u16, String)> {
    let end = input.windows(4).position(|window| window == b"\r\n\r\n")? + 4;
    let head = str::from_utf8(&input[..end]).ok()?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    let mut headers = head.lines().filter_map(|line| line.split_once(':'));
    let length = headers.find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    let length = length.map_or(Some(0), |(_, value)| value.trim().parse().ok())?;
    let body = input.get(end..end + length)?;
    Some((status, String::from_utf8_lossy(body).into_owned()))
}
