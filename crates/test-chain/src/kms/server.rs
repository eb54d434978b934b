use std::{
    convert::Infallible,
    future, io,
    net::{Ipv4Addr, TcpListener},
    sync::Arc,
};

use bytes::Bytes;
use http_body_util::{BodyExt, Full, combinators::UnsyncBoxBody};
use hyper::{HeaderMap, Request, Response, body::Incoming, header, service::service_fn};
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto::Builder,
};
use tokio::{net::TcpStream, runtime, runtime::Runtime, task::spawn};

use super::{aws, gcp, kms_fault::KmsFault, kms_server::KmsApi};

type Body = UnsyncBoxBody<Bytes, Infallible>;

/// Serves on a free local port, until the runtime ends.
pub(super) fn serve(api: Arc<KmsApi>) -> io::Result<(u16, Runtime)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    listener.set_nonblocking(true)?;
    let port = listener.local_addr()?.port();
    let runtime = runtime::Builder::new_multi_thread().worker_threads(1).enable_io().build()?;
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

async fn serve_connection(stream: TcpStream, api: Arc<KmsApi>) {
    let service = service_fn(|request| answer(request, api.clone()));
    // An error only means that the client has disconnected.
    let _ =
        Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), service).await;
}

async fn answer(
    request: Request<Incoming>,
    api: Arc<KmsApi>,
) -> Result<Response<Body>, hyper::Error> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await?.to_bytes();
    let header = |name: &str| parts.headers.get(name).map_or(&b""[..], |it| it.as_bytes());
    let path = parts.uri.path();
    if path == "/token" {
        return Ok(json(200, gcp::TOKEN.to_owned()));
    }
    if api.state().fault == Some(KmsFault::Hung) {
        return future::pending().await;
    }
    let authorization = header("authorization");
    Ok(match path.strip_prefix(gcp::SERVICE) {
        Some(method) => grpc(gcp::respond(&api, method, authorization, &body)),
        None => {
            let target = String::from_utf8_lossy(header("x-amz-target"));
            let is_signed = authorization.starts_with(b"AWS4-HMAC-SHA256 ");
            let (status, text) = aws::respond(&api, &target, is_signed, &body);
            json(status, text)
        }
    })
}

fn json(status: u16, text: String) -> Response<Body> {
    response(status, "application/json", Full::from(text).boxed_unsync())
}

/// A status of gRPC that is not zero has no message.
fn grpc(result: Result<Vec<u8>, u8>) -> Response<Body> {
    let (message, status) = match result {
        Ok(message) => (message, 0),
        Err(status) => (Vec::new(), status),
    };
    let trailers = HeaderMap::from_iter([(
        header::HeaderName::from_static("grpc-status"),
        u16::from(status).into(),
    )]);
    let body = Full::from(message).with_trailers(future::ready(Some(Ok(trailers))));
    response(200, "application/grpc", body.boxed_unsync())
}

fn response(status: u16, content_type: &'static str, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = status.try_into().unwrap_or_default();
    let content_type = header::HeaderValue::from_static(content_type);
    response.headers_mut().insert(header::CONTENT_TYPE, content_type);
    response
}
