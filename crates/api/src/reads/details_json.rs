use axum::http::request::Parts;
use base64::{Engine, prelude::BASE64_STANDARD};
use grid_batch_core::batches::{Deadline, Receipt, StoredBatch};
use grid_batch_core::queries::{BatchDetails, CommitAfterInvalid, FailedAttempt};
use serde::Serialize;
use utoipa::ToSchema;

use super::{
    ReadContext, batch_details::ReadDetails, batch_history::HistoryEntry, batch_json::BatchJson,
};
use crate::{
    batches::{KnownWaits, WaitJson},
    http::{BatchStateName, EventKindName, Links, Time, json_types},
    operators::RecordedJson,
};

/// Everything that is stored about a batch, and its history.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct DetailsJson {
    #[serde(flatten)]
    batch: BatchJson,
    transaction_ids: Vec<String>,
    /// When its ledger cannot apply it any more.
    deadline: Option<DeadlineJson>,
    /// Null when it has ended.
    wait: Option<WaitJson>,
    failed_attempts: Vec<AttemptJson>,
    receipts: Vec<ReceiptJson>,
    commit_after_invalid: Option<CommitJson>,
    history: Vec<HistoryJson>,
    /// What operators did, the latest first.
    operator_actions: Vec<RecordedJson>,
    links: LinksJson,
}

/// A time or a height of the ledger; the other one is null.
#[derive(Debug, Serialize, ToSchema)]
struct DeadlineJson {
    time: Option<Time>,
    height: Option<u64>,
}

json_types! {
    struct AttemptJson(failed: FailedAttempt) {
        attempt: u32 = failed.attempt,
        submitted_at: Option<Time> = failed.submitted_at.map(Time),
        ended_at: Time = Time(failed.ended_at),
        outcome: String = failed.outcome,
        error: Option<String> = failed.error,
        next_try_at: Option<Time> = failed.next_try_at.map(Time),
    }

    struct ReceiptJson(receipt: Receipt) {
        transaction_id: Option<String> = receipt.transaction_id.map(|id| id.to_string()),
        message: String = receipt.error_message,
        /// In base64.
        data: String = BASE64_STANDARD.encode(&receipt.error_data),
    }

    struct CommitJson(report: CommitAfterInvalid) {
        reported_at: Time = Time(report.reported_at),
        source: String = report.source,
    }

    struct HistoryJson(entry: HistoryEntry) {
        at: Time = Time(entry.at),
        kind: EventKindName = EventKindName(entry.kind),
        state: Option<BatchStateName> = entry.state.map(BatchStateName),
        attempt: Option<u32> = entry.attempt,
        detail: Option<String> = entry.detail,
        instance: Option<String> = entry.instance,
    }

    struct LinksJson(batch: &StoredBatch, links: &Links<'_>) {
        bytes: String = links.batch(&batch.batch_id, "/bytes", &batch.service_id),
        explain: String = links.batch(&batch.batch_id, "/explain", &batch.service_id),
        service: String = links.service(&batch.service_id),
    }
}

impl DetailsJson {
    pub(super) fn new(
        context: &ReadContext,
        request: &Parts,
        ReadDetails { details, history, actions }: ReadDetails,
    ) -> Self {
        let known = context.sources.known_waits.of(&details.batch.service_id);
        let also = KnownWaits::about(&known, &details.batch);
        let wait = WaitJson::new(&details.batch, details.ahead.as_ref(), &also);
        let BatchDetails { batch, label, receipts, .. } = details;
        let first_reason = receipts.first().map(|receipt| receipt.error_message.clone());
        let error = first_reason.or_else(|| batch.last_error.clone());
        let links = context.api.links(request);
        Self {
            links: LinksJson::new(&batch, &links),
            batch: BatchJson::new(&batch, label.as_ref(), error, &links),
            transaction_ids: details.transaction_ids.iter().map(ToString::to_string).collect(),
            deadline: details.deadline.map(DeadlineJson::new),
            wait,
            failed_attempts: details.failed_attempts.into_iter().map(AttemptJson::new).collect(),
            receipts: receipts.into_iter().map(ReceiptJson::new).collect(),
            commit_after_invalid: details.commit_after_invalid.map(CommitJson::new),
            history: history.into_iter().map(HistoryJson::new).collect(),
            operator_actions: actions.into_iter().map(RecordedJson::new).collect(),
        }
    }
}

impl DeadlineJson {
    fn new(deadline: Deadline) -> Self {
        match deadline {
            Deadline::Time(time) => Self { time: Some(Time(time)), height: None },
            Deadline::Height(height) => Self { time: None, height: Some(height) },
        }
    }
}
