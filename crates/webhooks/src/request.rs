use std::time::Duration;

use grid_batch_core::batches::TraceContext;
use grid_batch_core::webhooks::{DueWebhook, Message};
use tokio::select;

use crate::{deliverer::Parts, signature::sign};

/// The result of a request.
pub(crate) enum Sent {
    Delivered,
    /// It failed and is to be tried again.
    Failed {
        error: String,
        /// The pause that the receiver asked for.
        retry_after: Option<Duration>,
    },
    /// The receiver wants no more events.
    Gone {
        error: String,
    },
    /// The server is stopping. The receiver may have received the request.
    Stopped,
}

/// Sends a message to the receiver of a webhook. It carries the trace of its batch.
pub(crate) async fn send(
    parts: &Parts,
    webhook: &DueWebhook,
    message: &Message,
    trace: Option<&TraceContext>,
) -> Sent {
    let Message { id, body } = message;
    let timestamp = parts.time().as_micros() / 1_000_000;
    let signatures = webhook.secrets.iter().map(|secret| sign(secret, id, timestamp, body));
    let signature = signatures.collect::<Vec<_>>().join(" ");
    let timestamp = timestamp.to_string();
    let headers = [
        ("content-type", "application/json"),
        ("user-agent", "grid-batch"),
        ("webhook-id", id.as_str()),
        ("webhook-timestamp", &timestamp),
        ("webhook-signature", &signature),
    ];
    let headers: Vec<(&str, &str)> =
        headers.into_iter().chain(trace.into_iter().flat_map(TraceContext::headers)).collect();
    let response = select! {
        () = parts.shutdown.requested() => return Sent::Stopped,
        response = parts.client.post(&webhook.url, &headers, body.clone().into()) => response,
    };
    let failed = |error, retry_after| Sent::Failed { error, retry_after };
    match response {
        Err(error) => failed(error.to_string(), None),
        Ok(response) => match response.status {
            200..=299 => Sent::Delivered,
            300..=399 => {
                let status = response.status;
                failed(
                    format!(
                        "the receiver answered with a redirect (status {status}), which is not followed"
                    ),
                    None,
                )
            }
            410 => Sent::Gone { error: "the receiver is gone, with status 410".to_owned() },
            status => {
                failed(format!("the receiver answered with status {status}"), response.retry_after)
            }
        },
    }
}
