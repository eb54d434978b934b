use std::fmt::Display;

use base64::{Engine, prelude::BASE64_STANDARD};
use grid_batch_core::batches::{BatchState, Receipt, StoredBatch};
use grid_batch_core::queries::WaitReason;
use grid_batch_core::queue::Ahead;
use grid_batch_core::{ItemId, ServiceId};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};
use utoipa::ToSchema;

use crate::{
    batches::wait_json::WaitJson,
    http::{DltStatusName, Time, json_types},
};

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

json_types! {
    /// Clients parse it as a map of strings, so it has no nulls and no objects.
    #[derive(Clone, Default, Deserialize)]
    #[serde(default)]
    struct InvalidTransactionJson(receipt: Receipt) {
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<String> = receipt.transaction_id.map(|id| id.to_string()),
        #[serde(skip_serializing_if = "String::is_empty")]
        message: String = receipt.error_message,
        #[serde(skip_serializing_if = "String::is_empty")]
        extended_data: String = BASE64_STANDARD.encode(&receipt.error_data),
    }

    #[derive(Clone)]
    struct ProgressJson(batch: StoredBatch, reason: Option<WaitJson>) {
        #[serde(serialize_with = "as_text")]
        #[schema(value_type = String)]
        service_id: ServiceId = batch.service_id,
        submitted: bool = batch.progress.state.submitted(),
        dlt_status: Option<DltStatusName> = batch.progress.state.dlt_status().map(DltStatusName),
        attempts: u32 = batch.progress.attempts,
        last_error: Option<String> = batch.last_error,
        submitted_at: Option<Time> = batch.submitted_at.map(Time),
        checked_at: Option<Time> = batch.checked_at.map(Time),
        #[serde(skip_serializing_if = "Option::is_none")]
        wait: Option<WaitJson> = reason,
    }
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
        let wait = WaitJson::new(&batch, ahead, also);
        Self {
            id: batch.batch_id,
            status: match batch.progress.state {
                BatchState::Committed => SawtoothStatus::Committed,
                BatchState::Invalid => SawtoothStatus::Invalid,
                _ => SawtoothStatus::Pending,
            },
            invalid_transactions: receipts.into_iter().map(InvalidTransactionJson::new).collect(),
            progress: Some(ProgressJson::new(batch, wait)),
        }
    }

    pub(crate) fn is_unknown(&self) -> bool {
        self.status == SawtoothStatus::Unknown
    }

    pub(crate) fn is_pending(&self) -> bool {
        self.status == SawtoothStatus::Pending
    }
}

fn as_text<S: Serializer>(value: &impl Display, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}

fn from_text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ItemId, D::Error> {
    String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
}
