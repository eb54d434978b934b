use grid_batch_core::{Ahead, Hold, StoredBatch, Wait};
use serde::Serialize;

use crate::http::rfc3339;

/// Why a batch waits: a part of its status as long as it is open.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct WaitJson {
    cause: &'static str,
    text: String,
    since: String,
    next_try_at: Option<String>,
    held: Option<HoldJson>,
    /// Not there for the batch that others are behind.
    #[serde(skip_serializing_if = "Option::is_none")]
    behind: Option<Option<Box<AheadJson>>>,
}

#[derive(Debug, Clone, Serialize)]
struct HoldJson {
    since: String,
    reason: String,
    until_decision: bool,
}

/// The batches that come before one: the first of them, and how many there are.
#[derive(Debug, Clone, Serialize)]
struct AheadJson {
    batch_id: String,
    ahead: u64,
    more_ahead: bool,
    attempts: u32,
    last_error: Option<String>,
    wait: Option<WaitJson>,
}

impl WaitJson {
    /// `None`: the batch has ended.
    pub(crate) fn new(batch: &StoredBatch, ahead: Option<&Ahead>) -> Option<Self> {
        let behind = Some(ahead.map(|ahead| Box::new(AheadJson::new(ahead))));
        Some(Self { behind, ..Self::of_head(batch, &Wait::of(batch, ahead)?) })
    }

    fn of_head(batch: &StoredBatch, wait: &Wait<'_>) -> Self {
        Self {
            cause: wait.cause.as_str(),
            text: wait.to_string(),
            since: rfc3339(wait.since),
            next_try_at: batch.next_try_at.map(rfc3339),
            held: batch.held.as_ref().map(HoldJson::new),
            behind: None,
        }
    }
}

impl HoldJson {
    fn new(hold: &Hold) -> Self {
        let Hold { since, reason, until_decision } = hold;
        Self { since: rfc3339(*since), reason: reason.clone(), until_decision: *until_decision }
    }
}

impl AheadJson {
    fn new(ahead: &Ahead) -> Self {
        let Ahead { head, count, more } = ahead;
        Self {
            batch_id: head.batch_id.to_string(),
            ahead: *count,
            more_ahead: *more,
            attempts: head.progress.attempts,
            last_error: head.last_error.clone(),
            wait: Wait::of(head, None).map(|wait| WaitJson::of_head(head, &wait)),
        }
    }
}
