//! Threads that talk to the server, so that keys never wait for it.

use std::{
    sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    time::Duration,
};

use grid_batch_client::ClientError;
use grid_batch_support::spawn_thread;
use serde_json::{Value, json};

use super::{
    rates::EventFeed,
    reading::Reading,
    view::{Answer, ReadFailure, Request, Subject, Verb},
};
use crate::commands::{
    failure::Failure,
    remote::{self, Server},
};

/// Reads the server again and again. A message makes it read at once; it ends with the sender of those.
pub(super) fn start_reader(
    server: Server,
    interval: Duration,
    answer: impl Fn(Answer) + Send + 'static,
) -> Result<Sender<()>, Failure> {
    let (sender, wanted) = channel();
    spawn_thread("reader", move || {
        let mut feed = EventFeed::default();
        loop {
            let reading = Reading::take(&server, &mut feed);
            answer(Answer::Reading(reading.map(Box::new).map_err(read_failure)));
            if wanted.recv_timeout(interval) == Err(RecvTimeoutError::Disconnected) {
                return;
            }
        }
    })?;
    Ok(sender)
}

fn read_failure(failure: Failure) -> ReadFailure {
    if failure.is_unreachable() {
        ReadFailure::NoAnswer(failure.to_string())
    } else {
        ReadFailure::Refused(failure.to_string())
    }
}

/// Runs the actions of keys, one after the other.
pub(super) fn start_requests(
    server: Server,
    read_again: Sender<()>,
    answer: impl Fn(Answer) + Send + 'static,
) -> Result<Sender<Request>, Failure> {
    let (sender, requests): (_, Receiver<Request>) = channel();
    spawn_thread("requests", move || {
        for request in requests {
            let is_action = matches!(request, Request::Act { .. });
            answer(perform(&server, request));
            if is_action {
                // The reader ends with the program.
                let _ = read_again.send(());
            }
        }
    })?;
    Ok(sender)
}

fn perform(server: &Server, request: Request) -> Answer {
    match request {
        Request::Explain(of) => {
            let explanation = explain(server, &of).map_err(|failure| failure.to_string());
            Answer::Explanation { of, explanation }
        }
        Request::Act { verb, service, reason } => {
            let result = act(server, verb, &service, &reason);
            Answer::Acted { verb, service, result }
        }
    }
}

fn explain(server: &Server, of: &Subject) -> Result<Value, Failure> {
    Ok(match of {
        Subject::Service(service) => server.client.explain_service(service)?,
        Subject::Batch { id, service } => {
            server.client.explain_batch(&id.parse()?, Some(service))?
        }
    })
}

fn act(server: &Server, verb: Verb, service: &str, reason: &str) -> Result<(), String> {
    let path = remote::action_path("services", service, verb.name());
    server.client.post(&path, &[], &json!({"reason": reason})).map(drop).map_err(in_words)
}

fn in_words(error: ClientError) -> String {
    match error {
        ClientError::Refused { status: 401 | 403, problem } => format!("not allowed: {problem}"),
        ClientError::Refused { status: 404, problem } => format!("it does not exist: {problem}"),
        error => Failure::from(error).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use grid_batch_client::Problem;

    use super::*;

    #[test]
    fn refusals_are_told_in_words() {
        let told = |status| {
            let problem = Problem { code: Some(1093), text: "the token lacks operate".to_owned() };
            in_words(ClientError::Refused { status, problem })
        };
        assert_eq!(told(403), "not allowed: the token lacks operate (code 1093)");
        assert_eq!(told(404), "it does not exist: the token lacks operate (code 1093)");
        assert_eq!(told(409), "the token lacks operate (code 1093)");
    }
}
