use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::{Request, Response, body::Incoming, header, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use tokio::{
    net::{TcpListener, TcpStream},
    task::{spawn, spawn_blocking},
};

use super::conduct::{Conduct, Reply};

/// Has the connection closed without an answer.
#[derive(Debug, thiserror::Error)]
#[error("no answer is given")]
struct NoAnswer;

pub(super) async fn accept(listener: TcpListener, conduct: Arc<Conduct>) {
    while let Ok((stream, _)) = listener.accept().await {
        spawn(serve_connection(stream, conduct.clone()));
    }
}

async fn serve_connection(stream: TcpStream, conduct: Arc<Conduct>) {
    let _ = stream.set_nodelay(true);
    let service = service_fn(|request| answer(request, conduct.clone()));
    // Clients come and go as they like.
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

async fn answer(
    request: Request<Incoming>,
    conduct: Arc<Conduct>,
) -> Result<Response<Full<Bytes>>, NoAnswer> {
    let body = request.into_body().collect().await.map_err(|_| NoAnswer)?.to_bytes();
    let reply = spawn_blocking(move || conduct.reply(&body)).await.map_err(|_| NoAnswer)?;
    let response = Response::builder().header(header::CONTENT_TYPE, "application/json");
    match reply {
        Reply::Answer(bytes) => response.body(bytes.into()),
        Reply::Status { code, retry_after: None } => response.status(code).body(Full::default()),
        Reply::Status { code, retry_after: Some(pause) } => {
            response.status(code).header(header::RETRY_AFTER, pause.as_secs()).body(Full::default())
        }
        Reply::Nothing => return Err(NoAnswer),
    }
    .map_err(|_| NoAnswer)
}
