//! The nodes: HTTP over the loopback interface.

use std::{convert::Infallible, future::pending, io, net::SocketAddr, sync::Arc, time::Duration};

use http_body_util::{BodyExt, Full};
use hyper::{
    Method, Request, Response,
    body::{Bytes, Incoming},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use serde::Serialize;
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};

use crate::{Fault, Posted, Shared};

type Answer = Response<Full<Bytes>>;

/// The connection is closed without an answer.
type Closed = io::Error;

pub(crate) async fn produce_blocks(shared: Arc<Shared>, interval: Duration) {
    let mut ticks = tokio::time::interval(interval);
    loop {
        ticks.tick().await;
        shared.state().chain.add_block();
    }
}

/// Starts a node that is so many blocks behind.
pub(crate) async fn start(
    shared: Arc<Shared>,
    address: String,
    lag: u64,
) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind(address).await?;
    let address = listener.local_addr()?;
    tokio::spawn(async move {
        loop {
            if let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(Arc::clone(&shared), stream, lag));
            }
        }
    });
    Ok(address)
}

async fn serve(shared: Arc<Shared>, stream: TcpStream, lag: u64) {
    let mut closing = shared.closing();
    let service = service_fn(|request| handle(Arc::clone(&shared), request, lag));
    let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
    tokio::select! {
        _ = connection => {}
        _ = closing.changed() => {}
    }
}

async fn handle(
    shared: Arc<Shared>,
    request: Request<Incoming>,
    lag: u64,
) -> Result<Answer, Closed> {
    let path: Vec<String> = request.uri().path().split('/').skip(1).map(str::to_owned).collect();
    let path: Vec<&str> = path.iter().map(String::as_str).collect();
    match (request.method().clone(), path.as_slice()) {
        (Method::GET, ["status"]) => {
            let chain = &shared.state().chain;
            let height = chain.height().saturating_sub(lag);
            Ok(answer(200, &json!({ "network": chain.network(), "height": height })))
        }
        (Method::GET, ["accounts", account, "transactions", id]) => {
            Ok(answer(200, &shared.state().chain.record(account, id, lag)))
        }
        (Method::POST, ["transactions"]) => {
            let body = request.into_body().collect().await.map_err(io::Error::other)?;
            post(&shared, body.to_bytes().to_vec(), lag).await
        }
        _ => Ok(error(404, "there is no such resource")),
    }
}

async fn post(shared: &Shared, bytes: Vec<u8>, lag: u64) -> Result<Answer, Closed> {
    let fault = {
        let mut state = shared.state();
        state.arrivals += 1;
        match state.fault {
            Some(Fault::Busy | Fault::Refuses) => state.fault,
            _ => state.fault.take(),
        }
    };
    match fault {
        None => Ok(posted(shared.state().chain.post(&bytes, lag))),
        Some(Fault::Busy) => Ok(error(503, "the node is busy")),
        Some(Fault::Refuses) => Ok(error(403, "the node takes nothing from this client")),
        Some(Fault::LosesRequest) => Err(closed()),
        Some(Fault::LosesAnswer) => {
            shared.state().chain.post(&bytes, lag);
            Err(closed())
        }
        Some(Fault::HoldsRequest) => {
            shared.state().held = Some(bytes);
            never().await
        }
        Some(Fault::HoldsAnswer) => {
            shared.state().chain.post(&bytes, lag);
            never().await
        }
    }
}

/// Returns when the connection is closed.
async fn never() -> Result<Answer, Closed> {
    pending::<Infallible>().await;
    Err(closed())
}

fn closed() -> Closed {
    io::Error::other("the connection is closed without an answer")
}

fn posted(posted: Posted) -> Answer {
    match posted {
        Posted::Waits => answer(202, &json!({})),
        Posted::Malformed(text) => error(400, &text),
        Posted::TooLate(text) => error(409, &text),
        Posted::TooEarly(text) => error(425, &text),
    }
}

fn error(status: u16, text: &str) -> Answer {
    with_status(status, text.to_owned().into_bytes())
}

fn answer(status: u16, body: &impl Serialize) -> Answer {
    with_status(status, serde_json::to_vec(body).unwrap_or_default())
}

fn with_status(status: u16, body: Vec<u8>) -> Answer {
    let mut answer = Response::new(Full::new(Bytes::from(body)));
    *answer.status_mut() = status.try_into().unwrap_or_default();
    answer
}
