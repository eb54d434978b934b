use std::fmt::Display;

use base64::{Engine, prelude::BASE64_STANDARD};
use grid_batch_core::batches::{BatchState, DltStatus, Receipt, StoredBatch};
use grid_batch_core::queries::WaitReason;
use grid_batch_core::queue::Ahead;
use grid_batch_core::{ItemId, ServiceId, Timestamp};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};
use utoipa::ToSchema;

use crate::batches::wait_json::WaitJson;

/// The answer of `/batch_statuses`.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct BatchStatusesJson {
    pub(crate) data: Vec<BatchStatusJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) link: Option<String>,
}

/// The status of one batch.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub(crate) struct BatchStatusJson {
    #[serde(serialize_with = "as_text", deserialize_with = "from_text")]
    #[schema(value_type = String)]
    pub(crate) id: ItemId,
    status: SawtoothStatus,
    invalid_transactions: Vec<InvalidTransactionJson>,
    /// An addition to Sawtooth's format. Its clients ignore it.
    #[serde(skip_serializing_if = "Option::is_none", skip_deserializing)]
    progress: Option<ProgressJson>,
}

/// The statuses of Sawtooth's REST API.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "UPPERCASE")]
enum SawtoothStatus {
    Committed,
    Invalid,
    Pending,
    Unknown,
}

/// Clients parse it as a map of strings, so it has no nulls and no objects.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(default)]
struct InvalidTransactionJson {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    message: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    extended_data: String,
}

#[derive(Debug, Clone, Serialize, ToSchema)]
struct ProgressJson {
    #[serde(serialize_with = "as_text")]
    #[schema(value_type = String)]
    service_id: ServiceId,
    submitted: bool,
    dlt_status: Option<&'static str>,
    attempts: u32,
    last_error: Option<String>,
    submitted_at: Option<String>,
    checked_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    wait: Option<WaitJson>,
}

impl BatchStatusJson {
    /// The status of a batch that is not stored.
    pub(crate) fn unknown(id: ItemId) -> Self {
        let status = SawtoothStatus::Unknown;
        Self { id, status, invalid_transactions: Vec::new(), progress: None }
    }

    pub(crate) fn new(
        batch: StoredBatch,
        receipts: Vec<Receipt>,
        ahead: Option<&Ahead>,
        also: &[WaitReason],
    ) -> Self {
        let state = batch.progress.state;
        let wait = WaitJson::new(&batch, ahead, also);
        Self {
            id: batch.batch_id,
            status: match state {
                BatchState::Committed => SawtoothStatus::Committed,
                BatchState::Invalid => SawtoothStatus::Invalid,
                _ => SawtoothStatus::Pending,
            },
            invalid_transactions: receipts.into_iter().map(InvalidTransactionJson::new).collect(),
            progress: Some(ProgressJson {
                service_id: batch.service_id,
                submitted: state.submitted(),
                dlt_status: state.dlt_status().map(DltStatus::as_str),
                attempts: batch.progress.attempts,
                last_error: batch.last_error,
                submitted_at: batch.submitted_at.map(Timestamp::rfc3339_micros),
                checked_at: batch.checked_at.map(Timestamp::rfc3339_micros),
                wait,
            }),
        }
    }

    pub(crate) fn is_unknown(&self) -> bool {
        self.status == SawtoothStatus::Unknown
    }

    pub(crate) fn is_pending(&self) -> bool {
        self.status == SawtoothStatus::Pending
    }
}

impl InvalidTransactionJson {
    fn new(receipt: Receipt) -> Self {
        Self {
            id: receipt.transaction_id.map(|id| id.to_string()),
            message: receipt.error_message,
            extended_data: BASE64_STANDARD.encode(&receipt.error_data),
        }
    }
}

fn as_text<S: Serializer>(value: &impl Display, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}

fn from_text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ItemId, D::Error> {
    String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
}
