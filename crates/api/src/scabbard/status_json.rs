//! The JSON of a batch's status, as a Splinter node writes it.

use grid_batch_core::batches::{BatchState, Receipt, StoredBatch};
use grid_batch_core::queries::{BatchDetails, BatchQueryStore};
use grid_batch_core::{ItemId, ServiceId, Timestamp};
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::http::ApiError;

/// The status of one batch: of a stored one, or what a node reports.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
pub(super) enum StatusJson {
    Own(OwnStatusJson),
    OfNode(Value),
}

#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = ScabbardStatusJson)]
pub(super) struct OwnStatusJson {
    id: String,
    status: StatusContent,
    timestamp: TimeJson,
}

/// `Unknown` and `Pending` have no message, as from nodes of version 0.6: their clients fail at the empty list
/// that later nodes send.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(tag = "statusType", content = "message")]
enum StatusContent {
    Unknown,
    Pending,
    Valid(Vec<ValidJson>),
    Committed(Vec<ValidJson>),
    Invalid(Vec<InvalidJson>),
}

#[derive(Debug, Clone, Serialize, ToSchema)]
struct ValidJson {
    transaction_id: String,
}

#[derive(Debug, Clone, Serialize, ToSchema)]
struct InvalidJson {
    transaction_id: String,
    error_message: String,
    /// Bytes, as an array of numbers.
    error_data: Vec<u8>,
}

#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
struct TimeJson {
    secs_since_epoch: u64,
    nanos_since_epoch: u32,
}

impl StatusJson {
    /// The status of a batch that is not stored.
    pub(super) fn unknown(id: String, now: Timestamp) -> Self {
        let (status, timestamp) = (StatusContent::Unknown, TimeJson::from(now));
        Self::Own(OwnStatusJson { id, status, timestamp })
    }

    /// Reads the status of a batch. `None`: it is not stored.
    pub(super) fn read(
        store: &dyn BatchQueryStore,
        service_id: &ServiceId,
        id: &ItemId,
    ) -> Result<Option<Self>, ApiError> {
        let found = store.find(id).map_err(ApiError::read_failed)?;
        let Some(batch) = found.into_iter().find(|batch| batch.service_id == *service_id) else {
            return Ok(None);
        };
        let timestamp = TimeJson::from(batch.ended_at.or(batch.since).unwrap_or(batch.created_at));
        let status = match batch.progress.state {
            BatchState::Valid | BatchState::Committed | BatchState::Invalid => {
                let details = store.details(service_id, id).map_err(ApiError::read_failed)?;
                let Some(details) = details else { return Ok(None) };
                StatusContent::new(&batch, details)
            }
            _ => StatusContent::Pending,
        };
        Ok(Some(Self::Own(OwnStatusJson { id: id.to_string(), status, timestamp })))
    }

    /// Whether the batch has ended.
    pub(super) fn is_final(&self) -> bool {
        match self {
            Self::Own(own) => {
                matches!(own.status, StatusContent::Committed(_) | StatusContent::Invalid(_))
            }
            Self::OfNode(report) => {
                let status = report.pointer("/status/statusType").and_then(Value::as_str);
                matches!(status, Some("Committed" | "Invalid"))
            }
        }
    }

    /// What a node reports about a batch that it has; `None` if it does not have it.
    pub(super) fn of_node(report: &Value) -> Option<Self> {
        let status = report.pointer("/status/statusType").and_then(Value::as_str)?;
        match status {
            "Unknown" => None,
            "Pending" => {
                let mut report = report.clone();
                report["status"] = json!({ "statusType": status });
                Some(Self::OfNode(report))
            }
            _ => Some(Self::OfNode(report.clone())),
        }
    }

    /// The id, if neither the store nor a node has the batch.
    pub(super) fn unknown_id(&self) -> Option<&str> {
        match self {
            Self::Own(own) if matches!(own.status, StatusContent::Unknown) => Some(&own.id),
            _ => None,
        }
    }
}

impl StatusContent {
    fn new(batch: &StoredBatch, details: BatchDetails) -> Self {
        let BatchDetails { transaction_ids, receipts, .. } = details;
        let valid = || {
            let ids = transaction_ids.iter().map(ToString::to_string);
            ids.map(|transaction_id| ValidJson { transaction_id }).collect()
        };
        // A reason that names no transaction concerns the whole batch. Clients need one.
        let first = || transaction_ids.first().map(ToString::to_string).unwrap_or_default();
        let invalid = |receipt: Receipt| InvalidJson {
            transaction_id: receipt.transaction_id.map_or_else(first, |id| id.to_string()),
            error_message: receipt.error_message,
            error_data: receipt.error_data,
        };
        match batch.progress.state {
            BatchState::Committed => Self::Committed(valid()),
            BatchState::Invalid => Self::Invalid(receipts.into_iter().map(invalid).collect()),
            _ => Self::Valid(valid()),
        }
    }
}

impl From<Timestamp> for TimeJson {
    fn from(time: Timestamp) -> Self {
        let since = time.since(Timestamp::default());
        Self { secs_since_epoch: since.as_secs(), nanos_since_epoch: since.subsec_nanos() }
    }
}
