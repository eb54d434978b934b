use std::{
    future, io,
    net::{Ipv4Addr, TcpListener},
    sync::Arc,
};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::{Request, Response, body::Incoming, header, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use tokio::{
    net::TcpStream,
    runtime::{Builder, Runtime},
    task::spawn,
};

use super::api::{SignerApi, SignerReply, Unanswered};

/// Makes hyper close the connection without a response.
#[derive(Debug, thiserror::Error)]
#[error("the connection is closed without a response")]
struct CloseConnection;

/// Serves on a free local port, until the runtime ends.
pub(super) fn serve(api: Arc<SignerApi>) -> io::Result<(u16, Runtime)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    listener.set_nonblocking(true)?;
    let port = listener.local_addr()?.port();
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_io().build()?;
    let listener = {
        let _guard = runtime.enter();
        tokio::net::TcpListener::from_std(listener)?
    };
    runtime.spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            spawn(serve_connection(stream, api.clone()));
        }
    });
    Ok((port, runtime))
}

async fn serve_connection(stream: TcpStream, api: Arc<SignerApi>) {
    let service = service_fn(|request| answer(request, api.clone()));
    // An error only means that the client has disconnected.
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

async fn answer(
    request: Request<Incoming>,
    api: Arc<SignerApi>,
) -> Result<Response<Full<Bytes>>, CloseConnection> {
    let (method, path) = (request.method().to_string(), request.uri().path().to_owned());
    let body = request.into_body().collect().await.map_err(|_| CloseConnection)?.to_bytes();
    match api.reply(&method, &path, &body) {
        SignerReply::Response(status, text) => {
            let response = Response::builder().status(status);
            let response = response.header(header::CONTENT_TYPE, "text/plain; charset=utf-8");
            response.body(text.into()).map_err(|_| CloseConnection)
        }
        SignerReply::ConnectionClosed => Err(CloseConnection),
        SignerReply::Hang => {
            let _unanswered = Unanswered::new(api);
            future::pending().await
        }
    }
}
