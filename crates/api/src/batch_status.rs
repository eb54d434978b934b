use std::fmt::Display;

use base64::{Engine, prelude::BASE64_STANDARD};
use grid_batch_core::{BatchState, DltStatus, HeaderId, Receipt, ServiceId, StoredBatch};
use serde::{Serialize, Serializer};

/// The answer to a question for statuses.
#[derive(Debug, Serialize)]
pub(crate) struct Statuses {
    pub(crate) data: Vec<BatchStatus>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) link: Option<String>,
}

/// What is said of one batch.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct BatchStatus {
    #[serde(serialize_with = "as_text")]
    pub(crate) id: HeaderId,
    pub(crate) status: ClientStatus,
    invalid_transactions: Vec<InvalidTransaction>,
    /// Beyond what Sawtooth says; its clients pass over it.
    #[serde(skip_serializing_if = "Option::is_none")]
    progress: Option<Progress>,
}

/// A status as clients of Sawtooth know it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub(crate) enum ClientStatus {
    Committed,
    Invalid,
    Pending,
    Unknown,
}

/// Clients read it as a map of texts, so nothing in it is null or an object.
#[derive(Debug, Clone, Serialize)]
struct InvalidTransaction {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    message: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    extended_data: String,
}

#[derive(Debug, Clone, Serialize)]
struct Progress {
    #[serde(serialize_with = "as_text")]
    service_id: ServiceId,
    submitted: bool,
    dlt_status: Option<&'static str>,
    attempts: u32,
    last_error: Option<String>,
}

impl BatchStatus {
    pub(crate) fn unknown(id: HeaderId) -> Self {
        let status = ClientStatus::Unknown;
        Self { id, status, invalid_transactions: Vec::new(), progress: None }
    }

    pub(crate) fn of(batch: StoredBatch, receipts: Vec<Receipt>) -> Self {
        let state = batch.progress.state;
        Self {
            id: batch.batch_id,
            status: match state {
                BatchState::Committed => ClientStatus::Committed,
                BatchState::Invalid => ClientStatus::Invalid,
                _ => ClientStatus::Pending,
            },
            invalid_transactions: receipts.into_iter().map(InvalidTransaction::of).collect(),
            progress: Some(Progress {
                service_id: batch.service_id,
                submitted: state.submitted(),
                dlt_status: state.dlt_status().map(DltStatus::as_str),
                attempts: batch.progress.attempts,
                last_error: batch.last_error,
            }),
        }
    }
}

impl InvalidTransaction {
    fn of(receipt: Receipt) -> Self {
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
