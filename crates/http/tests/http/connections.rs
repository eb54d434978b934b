//! Connections are reused, and no request is sent twice because of that.

use std::{collections::HashMap, thread, time::Duration};

use futures_util::future::join;
use grid_batch_http::{HttpClient, HttpError, HttpOptions};
use tokio::{
    io::AsyncReadExt,
    runtime::{Builder, Runtime},
    sync::{mpsc::unbounded_channel, oneshot},
    time,
};

use crate::server::{OK, Server, client};

#[tokio::test]
async fn connection_is_reused() {
    let server = Server::responding(OK).await;
    let client = client();
    for _ in 0..3 {
        client.get(&server.url(), &[]).await.unwrap();
    }
    assert_eq!((server.connections(), server.requests().len()), (1, 3));
}

#[tokio::test]
async fn connection_is_not_reused_after_the_idle_timeout() {
    let pool_idle_timeout = Duration::from_secs(3);
    let server = Server::responding(OK).await;
    let client =
        HttpClient::new(&HttpOptions { pool_idle_timeout, ..HttpOptions::default() }).unwrap();
    client.get(&server.url(), &[]).await.unwrap();

    time::pause();
    time::advance(pool_idle_timeout + Duration::from_millis(1)).await;
    time::resume();
    client.get(&server.url(), &[]).await.unwrap();
    assert_eq!(server.connections(), 2);
}

#[tokio::test]
async fn idle_connections_are_closed() {
    let (report, mut ends) = unbounded_channel();
    let server = Server::new(move |mut peer| {
        let report = report.clone();
        async move {
            while peer.request().await.is_some() {
                peer.send(OK.as_bytes()).await;
            }
            report.send(peer.number).unwrap();
        }
    })
    .await;
    let pool_idle_timeout = Duration::from_millis(50);
    let client =
        HttpClient::new(&HttpOptions { pool_idle_timeout, ..HttpOptions::default() }).unwrap();
    let (url, request) = (server.url(), [("x-one", "1")]);
    for number in [0, 2] {
        let (first, second) = join(client.get(&url, &request), client.get(&url, &request)).await;
        assert_eq!((first.unwrap().status, second.unwrap().status), (200, 200));
        let mut closed = [ends.recv().await.unwrap(), ends.recv().await.unwrap()];
        closed.sort_unstable();
        assert_eq!(closed, [number, number + 1]);
    }
}

#[tokio::test]
async fn connection_of_an_unread_response_is_not_reused() {
    // The third byte never comes.
    let server = Server::responding("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok").await;
    let client =
        HttpClient::new(&HttpOptions { max_response_bytes: 1, ..HttpOptions::default() }).unwrap();
    for _ in 0..2 {
        let response = client.get(&server.url(), &[]).await.unwrap();
        assert_eq!(response.body, Err(HttpError::TooLong { limit: 1 }));
    }
    assert_eq!(server.connections(), 2);
}

#[tokio::test]
async fn connection_that_the_server_closes_is_not_reused() {
    let closing = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok";
    let server = Server::responding(closing).await;
    let client = client();
    for _ in 0..2 {
        client.get(&server.url(), &[]).await.unwrap();
    }
    assert_eq!(server.connections(), 2);
}

#[tokio::test]
async fn response_may_come_before_the_body_is_sent() {
    let server = Server::new(|mut peer| async move {
        // The request has begun.
        peer.stream.read_u8().await.unwrap();
        peer.send(b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n").await;
        peer.stall().await;
    })
    .await;
    let response = client().post(&server.url(), &[], vec![b'x'; 50_000_000]).await.unwrap();
    assert_eq!(response.status, 413);
}

/// A server that disconnects after the first response, or while or after it reads the second
/// request of a connection.
async fn server_that_disconnects() -> Server {
    Server::new(|mut peer| async move {
        peer.request().await;
        peer.send(OK.as_bytes()).await;
        match peer.number % 4 {
            0 => {}
            1 => drop(peer.stream.readable().await),
            2 => drop(peer.request().await),
            _ => {
                peer.request().await;
                peer.reset();
            }
        }
    })
    .await
}

#[tokio::test]
async fn request_is_delivered_once_when_connections_break() {
    let server = server_that_disconnects().await;
    let client = client();
    let mut results = Vec::new();
    for number in 0..400 {
        let response = client.post(&server.url(), &[], number.to_string()).await;
        results.push((number.to_string(), response.map(|response| response.status)));
    }

    let mut delivered: HashMap<String, usize> = HashMap::new();
    for request in server.requests() {
        *delivered.entry(request.body).or_default() += 1;
    }
    for (body, result) in &results {
        let times = delivered.get(body).copied().unwrap_or(0);
        match result {
            Ok(status) => assert_eq!((*status, times), (200, 1)),
            Err(HttpError::NoResponse(_)) => assert!(times <= 1, "{body} came {times} times"),
            Err(other) => panic!("{body}: {other}"),
        }
    }
    let ambiguous = results.iter().filter(|(_, result)| result.is_err()).count();
    assert!(ambiguous > 0, "no connection broke during a request");
}

fn new_runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

#[test]
fn client_is_usable_on_one_runtime_after_another() {
    let serving = new_runtime();
    let server = serving.block_on(Server::responding(OK));
    let (stop, stopped) = oneshot::channel::<()>();
    let serving = thread::spawn(move || serving.block_on(stopped));

    let client = client();
    for _ in 0..3 {
        let runtime = new_runtime();
        for _ in 0..2 {
            let response = runtime.block_on(client.post(&server.url(), &[], "x")).unwrap();
            assert_eq!(response.status, 200);
        }
    }
    assert_eq!((server.connections(), server.requests().len()), (3, 6));
    drop(stop);
    serving.join().unwrap().unwrap_err();
}
