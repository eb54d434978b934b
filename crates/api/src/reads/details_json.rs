use axum::http::request::Parts;
use base64::{Engine, prelude::BASE64_STANDARD};
use grid_batch_core::Timestamp;
use grid_batch_core::batches::{BatchState, Deadline, Receipt};
use grid_batch_core::queries::{BatchDetails, CommitAfterInvalid, FailedAttempt};
use serde::Serialize;
use utoipa::ToSchema;

use super::{
    ReadContext, batch_details::ReadDetails, batch_history::HistoryEntry, batch_json::BatchJson,
};
use crate::{
    batches::{KnownWaits, WaitJson},
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
    time: Option<String>,
    height: Option<u64>,
}

#[derive(Debug, Serialize, ToSchema)]
struct AttemptJson {
    attempt: u32,
    submitted_at: Option<String>,
    ended_at: String,
    outcome: String,
    error: Option<String>,
    next_try_at: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
struct ReceiptJson {
    transaction_id: Option<String>,
    message: String,
    /// In base64.
    data: String,
}

#[derive(Debug, Serialize, ToSchema)]
struct CommitJson {
    reported_at: String,
    source: String,
}

#[derive(Debug, Serialize, ToSchema)]
struct HistoryJson {
    at: String,
    kind: &'static str,
    state: Option<&'static str>,
    attempt: Option<u32>,
    detail: Option<String>,
    instance: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
struct LinksJson {
    bytes: String,
    explain: String,
    service: String,
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
        let part = |part| links.batch(&batch.batch_id, part, &batch.service_id);
        Self {
            links: LinksJson {
                bytes: part("/bytes"),
                explain: part("/explain"),
                service: links.service(&batch.service_id),
            },
            batch: BatchJson::new(batch, label.as_ref(), error, &links),
            transaction_ids: details.transaction_ids.iter().map(ToString::to_string).collect(),
            deadline: details.deadline.map(DeadlineJson::new),
            wait,
            failed_attempts: details.failed_attempts.into_iter().map(AttemptJson::new).collect(),
            receipts: receipts.into_iter().map(ReceiptJson::new).collect(),
            commit_after_invalid: details.commit_after_invalid.map(CommitJson::new),
            history: history.into_iter().map(HistoryJson::new).collect(),
            operator_actions: actions.into_iter().map(RecordedJson::from).collect(),
        }
    }
}

impl DeadlineJson {
    fn new(deadline: Deadline) -> Self {
        match deadline {
            Deadline::Time(time) => Self { time: Some(time.rfc3339_micros()), height: None },
            Deadline::Height(height) => Self { time: None, height: Some(height) },
        }
    }
}

impl AttemptJson {
    fn new(attempt: FailedAttempt) -> Self {
        let FailedAttempt { attempt, submitted_at, ended_at, outcome, error, next_try_at } =
            attempt;
        Self {
            attempt,
            submitted_at: submitted_at.map(Timestamp::rfc3339_micros),
            ended_at: ended_at.rfc3339_micros(),
            outcome,
            error,
            next_try_at: next_try_at.map(Timestamp::rfc3339_micros),
        }
    }
}

impl ReceiptJson {
    fn new(receipt: Receipt) -> Self {
        Self {
            transaction_id: receipt.transaction_id.map(|id| id.to_string()),
            message: receipt.error_message,
            data: BASE64_STANDARD.encode(&receipt.error_data),
        }
    }
}

impl CommitJson {
    fn new(report: CommitAfterInvalid) -> Self {
        Self { reported_at: report.reported_at.rfc3339_micros(), source: report.source }
    }
}

impl HistoryJson {
    fn new(entry: HistoryEntry) -> Self {
        let HistoryEntry { at, kind, state, attempt, detail, instance } = entry;
        let state = state.map(BatchState::as_str);
        Self { at: at.rfc3339_micros(), kind: kind.as_str(), state, attempt, detail, instance }
    }
}
