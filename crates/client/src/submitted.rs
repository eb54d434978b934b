use grid_batch_core::ItemId;
use serde::Deserialize;
use serde_json::Value;

/// A batch that a server has stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AcceptedBatch {
    /// Its id.
    pub id: ItemId,
    /// The service that orders it.
    pub service_id: String,
}

/// The status of a batch.
#[derive(Debug, Clone, PartialEq)]
pub struct BatchStatus {
    /// Its id.
    pub id: ItemId,
    /// `PENDING`, `COMMITTED`, `INVALID` or `UNKNOWN`.
    pub status: String,
    /// Everything that the server reports about it.
    pub json: Value,
}

impl BatchStatus {
    /// Whether it was applied.
    pub fn is_committed(&self) -> bool {
        self.status == "COMMITTED"
    }

    /// Whether it ended without being applied.
    pub fn is_invalid(&self) -> bool {
        self.status == "INVALID"
    }

    /// Why it is invalid, or the last error of a batch that is open.
    pub fn error(&self) -> Option<&str> {
        let of_transaction = self.json.pointer("/invalid_transactions/0/message");
        let of_batch = || self.json.pointer("/progress/last_error");
        of_transaction.and_then(Value::as_str).or_else(|| of_batch()?.as_str())
    }

    /// Whether it has ended.
    pub fn has_ended(&self) -> bool {
        self.is_committed() || self.is_invalid()
    }
}

/// An answer with an entry for each batch.
#[derive(Debug, Deserialize)]
pub(crate) struct ListJson<T> {
    pub(crate) data: Vec<T>,
}

/// A batch in the answer to a list of batches.
#[derive(Debug, Deserialize)]
pub(crate) struct SubmittedJson {
    id: String,
    service_id: String,
}

pub(crate) fn read_submitted(
    SubmittedJson { id, service_id }: SubmittedJson,
) -> Result<AcceptedBatch, String> {
    let id = id.parse().map_err(|_| format!("{id} is not a batch id"))?;
    Ok(AcceptedBatch { id, service_id })
}

pub(crate) fn read_status(json: Value) -> Result<BatchStatus, String> {
    let text = |name: &str| {
        let value = json.get(name).and_then(Value::as_str);
        value.ok_or_else(|| format!("a status has no {name}"))
    };
    let id = text("id")?.parse().map_err(|_| "a status has no batch id".to_owned())?;
    Ok(BatchStatus { id, status: text("status")?.to_owned(), json })
}
