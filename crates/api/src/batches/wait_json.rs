use grid_batch_core::batches::{Hold, StoredBatch};
use grid_batch_core::queries::WaitReason;
use grid_batch_core::queue::{Ahead, Wait};
use serde::Serialize;
use utoipa::ToSchema;

use crate::http::{Time, json_types};

/// Why a batch waits: a part of its status as long as it is open.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct WaitJson {
    cause: &'static str,
    text: String,
    since: Time,
    ends: &'static str,
    next_try_at: Option<Time>,
    held: Option<HoldJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    waits_for: Option<WaitsForJson>,
    /// What keeps the batch besides.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    also: Vec<ReasonJson>,
    /// Not there for the batch that others are behind.
    #[serde(skip_serializing_if = "Option::is_none")]
    behind: Option<Option<Box<AheadJson>>>,
}

/// What keeps all batches of a service.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct ReasonJson {
    cause: &'static str,
    text: String,
    since: Option<Time>,
    ends: &'static str,
}

/// What one batch waits for, where its service may have several under way.
#[derive(Debug, Clone, Serialize, ToSchema)]
struct WaitsForJson {
    #[serde(skip_serializing_if = "Option::is_none")]
    batch_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    service_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    transaction_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    address: Option<String>,
}

json_types! {
    /// A hold.
    #[derive(Clone)]
    pub(crate) struct HoldJson(hold: &Hold) {
        since: Time = Time(hold.since),
        reason: String = hold.reason.clone(),
        until_decision: bool = hold.until_decision,
    }

    /// The batches that come before one: the one that it waits for, and how many there are.
    #[derive(Clone)]
    struct AheadJson(queue: &Ahead, head_wait: Option<Wait<'_>>) {
        batch_id: Option<String> = queue.head.as_ref().map(|head| head.batch_id.to_string()),
        ahead: u64 = queue.count,
        more_ahead: bool = queue.more,
        attempts: Option<u32> = queue.head.as_ref().map(|head| head.progress.attempts),
        last_error: Option<String> = queue.head.as_ref().and_then(|head| head.last_error.clone()),
        #[schema(no_recursion)]
        wait: Option<WaitJson> =
            queue.head.as_ref().zip(head_wait).map(|(head, wait)| WaitJson::of_head(head, &wait)),
    }
}

impl WaitJson {
    /// `None`: the batch has ended.
    pub(crate) fn new(
        batch: &StoredBatch,
        ahead: Option<&Ahead>,
        also: &[WaitReason],
    ) -> Option<Self> {
        let wait = Wait::of(batch, ahead)?;
        let is_behind = |ahead: &&Ahead| match &ahead.reason {
            reason if reason.is_place() => false,
            WaitReason::Paused { .. } => ahead.count > 0,
            _ => true,
        };
        let ahead_json = |ahead| Box::new(AheadJson::new(ahead, wait.of_head()));
        let behind = Some(ahead.filter(is_behind).map(ahead_json));
        let waits_for = ahead.and_then(WaitsForJson::new);
        let also = ReasonJson::all(also);
        Some(Self { behind, waits_for, also, ..Self::of_head(batch, &wait) })
    }

    fn of_head(batch: &StoredBatch, wait: &Wait<'_>) -> Self {
        Self {
            cause: wait.reason.name(),
            text: wait.to_string(),
            since: Time(wait.since),
            ends: wait.reason.about().ends,
            next_try_at: batch.next_try_at.map(Time),
            held: batch.held.as_ref().map(HoldJson::new),
            waits_for: None,
            also: Vec::new(),
            behind: None,
        }
    }
}

impl ReasonJson {
    /// Those that keep a whole service.
    pub(crate) fn all(reasons: &[WaitReason]) -> Vec<Self> {
        let json = |reason: &WaitReason| {
            Some(Self {
                cause: reason.name(),
                text: reason.sentence()?,
                since: reason.since().map(Time),
                ends: reason.about().ends,
            })
        };
        reasons.iter().filter_map(json).collect()
    }
}

impl WaitsForJson {
    fn new(ahead: &Ahead) -> Option<Self> {
        let (transaction_id, address) = match &ahead.reason {
            WaitReason::Conflict { address } => (None, address.as_ref()),
            WaitReason::Dependency { transaction_id }
            | WaitReason::MissingTransaction { transaction_id, .. } => (Some(transaction_id), None),
            WaitReason::Halt { .. } => (None, None),
            _ => return None,
        };
        Some(Self {
            batch_id: ahead.head.as_ref().map(|head| head.batch_id.to_string()),
            service_id: ahead.head.as_ref().map(|head| head.service_id.to_string()),
            transaction_id: transaction_id.map(ToString::to_string),
            address: address.map(|address| address.as_str().to_owned()),
        })
    }
}
