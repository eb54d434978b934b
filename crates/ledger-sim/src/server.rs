use std::{io, net, pin::pin, sync::Arc, time::Duration};

use bytes::BytesMut;
use http_body_util::BodyExt;
use hyper::{Request, Response, body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use tokio::{
    net::{TcpListener, TcpStream},
    runtime::{Builder, Runtime},
    select,
    sync::oneshot,
    time::sleep,
};

use crate::{
    event_socket, handler,
    port::Port,
    request::{RequestBody, SimRequest},
    resettable_stream::{ResetFlag, ResettableStream},
    response::ResponseBody,
    sim_context::{ConnectionReset, SimContext},
};

/// The pause after a failed accept, for example without free file descriptors.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(10);

pub(crate) fn runtime() -> io::Result<Runtime> {
    Builder::new_current_thread().enable_all().build()
}

/// Serves until `stop` is sent or dropped. All connections end with it.
pub(crate) async fn serve(
    listener: net::TcpListener,
    port: impl FnOnce(TcpListener) -> io::Result<Port>,
    context: Arc<SimContext>,
    stop: oneshot::Receiver<()>,
) -> io::Result<()> {
    let mut port = port(TcpListener::from_std(listener)?)?;
    select! {
        () = accept(&mut port, &context) => {}
        () = context.run_background_work() => {}
        _ = stop => {}
    }
    Ok(())
}

async fn accept(port: &mut Port, context: &Arc<SimContext>) {
    loop {
        match port.accept().await {
            // The boot is read here, because a stop closes the port before it ends the boot.
            Ok(stream) => {
                let boot = context.boot();
                drop(tokio::spawn(serve_connection(stream, context.clone(), boot)));
            }
            Err(_) => sleep(ACCEPT_RETRY_DELAY).await,
        }
    }
}

async fn serve_connection(stream: TcpStream, context: Arc<SimContext>, boot: u64) {
    let _ = stream.set_nodelay(true);
    let reset_flag = ResetFlag::default();
    let stream = TokioIo::new(ResettableStream::new(stream, reset_flag.clone()));
    let title_case = context.has_title_case_headers;
    let service =
        service_fn(|request| serve_request(context.clone(), boot, reset_flag.clone(), request));
    let connection =
        http1::Builder::new().title_case_headers(title_case).serve_connection(stream, service);
    let connection = connection.with_upgrades();
    let mut connection = pin!(connection);
    select! {
        // An error means that the client has disconnected.
        _ = &mut connection => {}
        ConnectionReset = context.wait_for_restart(boot) => reset_flag.set(),
    }
}

async fn serve_request(
    context: Arc<SimContext>,
    boot: u64,
    reset_flag: ResetFlag,
    mut request: Request<Incoming>,
) -> Result<Response<ResponseBody>, ConnectionReset> {
    let upgrade = hyper::upgrade::on(&mut request);
    let (parts, incoming) = request.into_parts();
    let body = read_body(incoming, context.max_body_bytes).await.map_err(|_| ConnectionReset)?;
    let request = SimRequest::new(parts, body, context.now());
    // A separate task handles the request even if the client has disconnected.
    let task_context = context.clone();
    let response =
        tokio::spawn(async move { handler::handle(&task_context, boot, &request).await });
    match response.await {
        Ok(Ok(mut response)) => {
            if response.breaks {
                reset_flag.set();
            }
            if let Some(subscription) = response.subscription.take() {
                tokio::spawn(async move {
                    event_socket::run(&context, boot, upgrade, reset_flag, *subscription).await;
                });
            }
            Ok(response.into_response())
        }
        Ok(Err(ConnectionReset)) | Err(_) => {
            reset_flag.set();
            Err(ConnectionReset)
        }
    }
}

/// Reads a body to its end even if it is too long, so that the client reads the response.
async fn read_body(mut incoming: Incoming, limit: usize) -> Result<RequestBody, hyper::Error> {
    let mut body = BytesMut::new();
    let mut too_long = None;
    while let Some(frame) = incoming.frame().await {
        let Ok(data) = frame?.into_data() else { continue };
        if too_long.is_none() {
            body.extend_from_slice(&data);
            too_long = (body.len() > limit).then_some(body.len());
        }
    }
    Ok(match too_long {
        Some(read) => RequestBody::TooLong { read },
        None => RequestBody::Complete(body.freeze()),
    })
}
