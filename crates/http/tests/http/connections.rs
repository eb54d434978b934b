//! Connections are kept, and nothing is sent twice for it.

use std::{collections::HashMap, thread, time::Duration};

use grid_batch_http::{HttpClient, HttpError, HttpOptions};
use tokio::{
    runtime::{Builder, Runtime},
    sync::oneshot,
    time,
};

use crate::server::{OK, Server, client};

#[tokio::test]
async fn a_connection_is_used_again() {
    let server = Server::keeps_saying(OK).await;
    let client = client();
    for _ in 0..3 {
        client.get(&server.url(), &[]).await.unwrap();
    }
    assert_eq!((server.connections(), server.requests().len()), (1, 3));
}

#[tokio::test]
async fn a_connection_that_was_idle_for_long_is_not_used_again() {
    let idle_limit = Duration::from_secs(3);
    let server = Server::keeps_saying(OK).await;
    let client = HttpClient::new(&HttpOptions { idle_limit, ..HttpOptions::default() }).unwrap();
    client.get(&server.url(), &[]).await.unwrap();

    time::pause();
    time::advance(idle_limit + Duration::from_millis(1)).await;
    time::resume();
    client.get(&server.url(), &[]).await.unwrap();
    assert_eq!(server.connections(), 2);
}

/// Hangs up after the first answer, or when the second request of a connection is read, at its
/// beginning or its end.
async fn server_that_hangs_up() -> Server {
    Server::new(|mut peer| async move {
        peer.request().await;
        peer.say(OK.as_bytes()).await;
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
async fn nothing_is_delivered_twice_when_kept_connections_end_at_the_worst_moment() {
    let server = server_that_hangs_up().await;
    let client = client();
    let mut results = Vec::new();
    for number in 0..400 {
        let answer = client.post(&server.url(), &[], number.to_string()).await;
        results.push((number.to_string(), answer.map(|answer| answer.status)));
    }

    let mut delivered: HashMap<String, usize> = HashMap::new();
    for request in server.requests() {
        *delivered.entry(request.body).or_default() += 1;
    }
    for (body, result) in &results {
        let times = delivered.get(body).copied().unwrap_or(0);
        match result {
            Ok(status) => assert_eq!((*status, times), (200, 1)),
            Err(HttpError::NoAnswer(_)) => assert!(times <= 1, "{body} came {times} times"),
            Err(other) => panic!("{body}: {other}"),
        }
    }
    let open = results.iter().filter(|(_, result)| result.is_err()).count();
    assert!(open > 0, "no connection ended at a bad moment");
}

fn a_runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

#[test]
fn a_client_outlives_the_runtimes_that_it_is_used_on() {
    let serving = a_runtime();
    let server = serving.block_on(Server::keeps_saying(OK));
    let (stop, stopped) = oneshot::channel::<()>();
    let serving = thread::spawn(move || serving.block_on(stopped));

    let client = client();
    for _ in 0..3 {
        let runtime = a_runtime();
        for _ in 0..2 {
            let answer = runtime.block_on(client.post(&server.url(), &[], "x")).unwrap();
            assert_eq!(answer.status, 200);
        }
    }
    assert_eq!((server.connections(), server.requests().len()), (3, 6));
    drop(stop);
    serving.join().unwrap().unwrap_err();
}
