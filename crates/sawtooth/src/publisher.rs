//! Whether the only known node publishes alone, so that a list of batches is applied in its order.

use std::{sync::Mutex, time::Duration};

use grid_batch_core::queue::ListSize;
use grid_batch_core::{BatchError, BatchResult, MonotonicTime};
use grid_batch_support::lock;
use log::{debug, info};
use serde::{Deserialize, de::IgnoredAny};

use crate::{Sawtooth, api_error::error_message};

/// How often a node is asked while lists are not allowed.
const ASKED_AGAIN_AFTER: Duration = Duration::from_secs(5);

/// What is known about the publisher.
#[derive(Debug)]
pub(crate) struct Publisher {
    lists: ListSize,
    asked: Mutex<Asked>,
}

#[derive(Debug, Default)]
struct Asked {
    at: Option<MonotonicTime>,
    is_alone: Option<bool>,
}

impl Publisher {
    pub(crate) fn new(lists: ListSize) -> Self {
        Self { lists, asked: Mutex::default() }
    }

    fn record(&self, answer: Result<bool, BatchError>, now: MonotonicTime) -> bool {
        let mut asked = lock(&self.asked);
        asked.at = Some(now);
        match (&answer, asked.is_alone) {
            (Err(error), _) => debug!(error:%; "cannot ask the node for its peers"),
            (Ok(true), Some(false)) => {
                info!("the node has no peers any more; conflicting batches are sent in lists");
            }
            (Ok(false), Some(true) | None) => {
                info!("the node has peers; conflicting batches are sent one after the other");
            }
            _ => {}
        }
        asked.is_alone = answer.ok();
        let is_alone = asked.is_alone == Some(true);
        self.lists.set_open(is_alone);
        is_alone
    }

    /// Whether the node is to be asked although no list is to be sent.
    fn is_due(&self, now: MonotonicTime) -> bool {
        let asked = lock(&self.asked);
        asked.is_alone != Some(true) && asked.at.is_none_or(|at| now.since(at) >= ASKED_AGAIN_AFTER)
    }
}

impl Sawtooth {
    /// Asks the node whether it publishes alone: it has no peers. Another publisher would have to be one.
    pub(crate) async fn publishes_alone(&self, url: &str) -> bool {
        let Some(publisher) = &self.publisher else { return false };
        let answer = self.has_no_peers(url).await;
        publisher.record(answer, self.before_post.monotonic())
    }

    /// Asks the node again after a while if lists were not allowed.
    pub(crate) async fn check_publisher_again(&self, url: &str) {
        let now = self.before_post.monotonic();
        if self.publisher.as_ref().is_some_and(|publisher| publisher.is_due(now)) {
            self.publishes_alone(url).await;
        }
    }

    async fn has_no_peers(&self, url: &str) -> BatchResult<bool> {
        let body = self.question_client.get(url, "peers").await?.successful_body(error_message)?;
        let peers: Peers = serde_json::from_slice(&body)
            .map_err(|error| BatchError::InvalidAnswer(format!("peers: {error}")))?;
        Ok(peers.data.is_empty())
    }
}

#[derive(Deserialize)]
struct Peers {
    data: Vec<IgnoredAny>,
}
