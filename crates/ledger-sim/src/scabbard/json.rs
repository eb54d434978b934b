//! Scabbard's JSON. The fields have the order of a real node.

use grid_batch_core::{ItemId, ServiceScopeId, Timestamp};
use serde::Serialize;

use super::history::{BatchInfo, BatchStatus, InvalidTransaction};

#[derive(Serialize)]
pub(super) struct Accepted {
    pub(super) link: String,
}

/// The value at an address, as an array of bytes.
#[derive(Serialize)]
pub(super) struct StateEntry<'a> {
    pub(super) address: &'a str,
    pub(super) value: Vec<u8>,
}

/// A path, not a URL. Without batches it ends after `ids`, as on a real node.
pub(super) fn link(service: &ServiceScopeId, ids: impl Iterator<Item = ItemId>) -> String {
    let ids: Vec<_> = ids.map(|id| id.to_string()).collect();
    let equals = if ids.is_empty() { "" } else { "=" };
    let (circuit, service) = (service.circuit(), service.service());
    format!("/scabbard/{circuit}/{service}/batch_statuses?ids{equals}{}", ids.join(","))
}

#[derive(Serialize)]
pub(super) struct StatusData {
    id: String,
    status: StatusContent,
    timestamp: Time,
}

#[derive(Serialize)]
#[serde(tag = "statusType", content = "message")]
enum StatusContent {
    Unknown([(); 0]),
    Pending([(); 0]),
    Valid(Vec<ValidData>),
    Committed(Vec<ValidData>),
    Invalid(Vec<InvalidData>),
}

#[derive(Serialize)]
struct ValidData {
    transaction_id: String,
}

#[derive(Serialize)]
struct InvalidData {
    transaction_id: String,
    error_message: String,
    /// Bytes, as an array of numbers.
    error_data: Vec<u8>,
}

#[derive(Serialize)]
struct Time {
    secs_since_epoch: u64,
    nanos_since_epoch: u32,
}

impl StatusData {
    /// The status of a batch. An unknown batch has the time of the request.
    pub(super) fn new(id: &str, info: Option<&BatchInfo>, now: Timestamp) -> Self {
        Self {
            id: id.to_owned(),
            status: info.map_or(StatusContent::Unknown([]), StatusContent::from),
            timestamp: Time::from(info.map_or(now, |info| info.since)),
        }
    }

    pub(super) fn is_final(&self) -> bool {
        matches!(self.status, StatusContent::Committed(_) | StatusContent::Invalid(_))
    }
}

impl From<&BatchInfo> for StatusContent {
    fn from(info: &BatchInfo) -> Self {
        match &info.status {
            BatchStatus::Pending => Self::Pending([]),
            BatchStatus::Valid(ids) => Self::Valid(valid(ids)),
            BatchStatus::Committed(ids) => Self::Committed(valid(ids)),
            BatchStatus::Invalid(invalid) => Self::Invalid(vec![InvalidData::from(invalid)]),
        }
    }
}

fn valid(ids: &[ItemId]) -> Vec<ValidData> {
    ids.iter().map(|id| ValidData { transaction_id: id.to_string() }).collect()
}

impl From<&InvalidTransaction> for InvalidData {
    fn from(invalid: &InvalidTransaction) -> Self {
        Self {
            transaction_id: invalid.id.to_string(),
            error_message: invalid.message.clone(),
            error_data: Vec::new(),
        }
    }
}

impl From<Timestamp> for Time {
    fn from(time: Timestamp) -> Self {
        let since = time.since(Timestamp::default());
        Self { secs_since_epoch: since.as_secs(), nanos_since_epoch: since.subsec_nanos() }
    }
}
