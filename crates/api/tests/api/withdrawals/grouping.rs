use std::{
    sync::{Mutex, mpsc},
    thread,
};

use grid_batch_api::ApiOptions;
use serde_json::Value;

use super::test_pools::{ADMIN, server_with_pools_and};
use crate::{client::Response, test_server::service};

/// The number of requests that may wait to be stored.
const WAITING: usize = 5;

/// The writer has stored the first request and is kept there. Of those that arrive meanwhile, one does
/// not fit into the queue; the others are stored in one commit.
#[test]
fn waiting_requests_share_a_commit() {
    let (release, released) = mpsc::channel::<()>();
    let (sender, commits) = mpsc::channel();
    let released = Mutex::new(released);
    let server = server_with_pools_and(|builder| {
        let options = ApiOptions { write_queue_limit: WAITING, ..ApiOptions::default() };
        builder.with_options(options).with_stored_callback(move |services| {
            // The test may have dropped the receiver.
            let _ = sender.send(services.to_vec());
            let _ = released.lock().unwrap().recv();
        })
    });
    let (answer, answers) = mpsc::channel::<Response>();
    thread::scope(|scope| {
        let post = |amount: usize| {
            let (server, answer) = (&server, answer.clone());
            scope.spawn(move || {
                let response = server.post_withdrawal(&[], "pool1", &amount.to_string());
                answer.send(response).unwrap();
            });
        };
        post(1);
        assert_eq!(commits.recv().unwrap(), [service(ADMIN)]);
        (2..=WAITING + 2).for_each(post);
        assert_eq!(answers.recv().unwrap().error(), (429, 31), "the one that did not fit");
        drop(release);
    });
    drop(answer);
    let stored: Vec<Value> = answers.iter().map(|response| response.json()).collect();
    assert_eq!(stored.len(), 1 + WAITING);
    assert_eq!(commits.try_iter().collect::<Vec<_>>(), [[service(ADMIN)]]);

    // Each has a place of its own in the queue, and the time that decides about it.
    let mut places: Vec<(&str, &str)> = stored
        .iter()
        .map(|json| (json["created_at"].as_str().unwrap(), json["waits_for"].as_str().unwrap()))
        .collect();
    places.sort_unstable();
    let expected = [
        "its submission, as the next of its gas admin",
        "1 earlier withdrawal of its gas admin",
        "2 earlier withdrawals of its gas admin",
        "3 earlier withdrawals of its gas admin",
        "4 earlier withdrawals of its gas admin",
        "5 earlier withdrawals of its gas admin",
    ];
    assert_eq!(places.into_iter().map(|(_, place)| place).collect::<Vec<_>>(), expected);
}
