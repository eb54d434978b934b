use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::{Request, Response, body::Incoming, header, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use tokio::{
    net::{TcpListener, TcpStream},
    task::{spawn, spawn_blocking},
};

use super::request_handler::{Reply, RequestHandler};

/// Makes hyper close the connection without a response.
#[derive(Debug, thiserror::Error)]
#[error("the connection is closed without a response")]
struct CloseConnection;

pub(super) async fn accept(listener: TcpListener, handler: Arc<RequestHandler>) {
    while let Ok((stream, _)) = listener.accept().await {
        spawn(serve_connection(stream, handler.clone()));
    }
}

async fn serve_connection(stream: TcpStream, handler: Arc<RequestHandler>) {
    let _ = stream.set_nodelay(true);
    let service = service_fn(|request| answer(request, handler.clone()));
    // An error only means that the client has disconnected.
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

async fn answer(
    request: Request<Incoming>,
    handler: Arc<RequestHandler>,
) -> Result<Response<Full<Bytes>>, CloseConnection> {
    let body = request.into_body().collect().await.map_err(|_| CloseConnection)?.to_bytes();
    let reply = spawn_blocking(move || handler.reply(&body)).await.map_err(|_| CloseConnection)?;
    let response = Response::builder().header(header::CONTENT_TYPE, "application/json");
    match reply {
        Reply::Body(bytes) => response.body(bytes.into()),
        Reply::Status { code, retry_after: None } => response.status(code).body(Full::default()),
        Reply::Status { code, retry_after: Some(delay) } => {
            response.status(code).header(header::RETRY_AFTER, delay.as_secs()).body(Full::default())
        }
        Reply::ConnectionClosed => return Err(CloseConnection),
    }
    .map_err(|_| CloseConnection)
}
