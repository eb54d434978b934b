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
    answer::Sending,
    ask::{Ask, Body},
    conduct,
    shared::{Reset, Shared},
    socket,
    wire::{Fate, Wire},
};

/// How long accepting rests when there are no file descriptors left.
const REST: Duration = Duration::from_millis(10);

pub(crate) fn runtime() -> io::Result<Runtime> {
    Builder::new_current_thread().enable_all().build()
}

/// Serves until told to stop. All connections end with it.
pub(crate) async fn serve(
    listener: net::TcpListener,
    shared: Arc<Shared>,
    stop: oneshot::Receiver<()>,
) -> io::Result<()> {
    let listener = TcpListener::from_std(listener)?;
    select! {
        () = accept(&listener, &shared) => {}
        () = shared.keep_going() => {}
        _ = stop => {}
    }
    Ok(())
}

async fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => drop(tokio::spawn(serve_connection(stream, shared.clone()))),
            Err(_) => sleep(REST).await,
        }
    }
}

async fn serve_connection(stream: TcpStream, shared: Arc<Shared>) {
    let _ = stream.set_nodelay(true);
    let life = shared.life();
    let fate = Fate::default();
    let wire = TokioIo::new(Wire::new(stream, fate.clone()));
    let capitals = shared.has_capital_headers;
    let service = service_fn(|request| serve_request(shared.clone(), life, fate.clone(), request));
    let connection =
        http1::Builder::new().title_case_headers(capitals).serve_connection(wire, service);
    let connection = connection.with_upgrades();
    let mut connection = pin!(connection);
    select! {
        // Clients come and go as they like.
        _ = &mut connection => {}
        Reset = shared.end_of(life) => fate.reset(),
    }
}

async fn serve_request(
    shared: Arc<Shared>,
    life: u64,
    fate: Fate,
    mut request: Request<Incoming>,
) -> Result<Response<Sending>, Reset> {
    let upgrade = hyper::upgrade::on(&mut request);
    let (parts, incoming) = request.into_parts();
    let body = read_body(incoming, shared.body_limit).await.map_err(|_| Reset)?;
    let ask = Ask::new(parts, body, shared.now());
    // In a task of its own: what was read whole is dealt with though the client has hung up.
    let serving = shared.clone();
    let answer = tokio::spawn(async move { conduct::answer(&serving, life, &ask).await });
    match answer.await {
        Ok(Ok(mut answer)) => {
            if answer.breaks {
                fate.reset();
            }
            if let Some(subscription) = answer.subscription.take() {
                tokio::spawn(async move {
                    socket::run(&shared, life, upgrade, fate, *subscription).await;
                });
            }
            Ok(answer.into_response())
        }
        Ok(Err(Reset)) | Err(_) => {
            fate.reset();
            Err(Reset)
        }
    }
}

/// What is too long is read to its end all the same, so that the client gets to read the answer.
async fn read_body(mut incoming: Incoming, limit: usize) -> Result<Body, hyper::Error> {
    let mut whole = BytesMut::new();
    let mut too_long = None;
    while let Some(frame) = incoming.frame().await {
        let Ok(data) = frame?.into_data() else { continue };
        if too_long.is_none() {
            whole.extend_from_slice(&data);
            too_long = (whole.len() > limit).then_some(whole.len());
        }
    }
    Ok(match too_long {
        Some(read) => Body::TooLong { read },
        None => Body::Whole(whole.freeze()),
    })
}
