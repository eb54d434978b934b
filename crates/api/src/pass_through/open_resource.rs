//! `GET /batches/ID` and `GET /transactions/ID` of Sawtooth's REST API, for a batch that the node does not have
//! yet.

use axum::{Json, http::request::Parts};
use base64::{Engine, prelude::BASE64_STANDARD};
use grid_batch_core::ItemId;
use grid_batch_core::batches::{BatchState, StoredBatch};
use grid_batch_core::queries::BatchQueryStore;
use grid_batch_protocol::{
    Batch, BatchHeader, DecodeError, Message, Transaction, TransactionHeader,
};
use serde_json::{Value, json};

use super::Forwarding;
use crate::http::{ApiError, ServerError};

/// What a request asks for.
#[derive(Debug, Clone, Copy)]
enum Resource {
    Batch(ItemId),
    Transaction(ItemId),
}

impl Forwarding {
    /// The batch or transaction that the request asks for, from the stored bytes: if its batch is open and the
    /// node says that it does not have it, or if no node answers and the batch is not known to be invalid.
    /// `answer` is the status of the node's answer.
    pub(super) async fn open_resource(
        &self,
        request: &Parts,
        answer: Option<u16>,
    ) -> Result<Option<Json<Value>>, ApiError> {
        let is_absent = match answer {
            Some(404) => true,
            Some(_) => return Ok(None),
            None => false,
        };
        let Some(resource) = Resource::named_by(request.uri.path()) else { return Ok(None) };
        let store = self.store.clone();
        let read = move || {
            let is_shown = |batch: &StoredBatch| {
                if is_absent {
                    !batch.progress.state.is_terminal()
                } else {
                    batch.progress.state != BatchState::Invalid
                }
            };
            let found = resource.find(&*store)?;
            let Some(batch) = found.into_iter().find(is_shown) else { return Ok(None) };
            store
                .serialized_batch(&batch.service_id, &batch.batch_id)
                .map_err(ApiError::read_failed)
        };
        let Some(bytes) = self.api.reads.run(read).await? else { return Ok(None) };
        let data = resource.json(&bytes).map_err(|_| ServerError::Internal)?;
        let link = self.api.links(request).own();
        Ok(Some(Json(json!({ "data": data, "link": link }))))
    }
}

impl Resource {
    fn named_by(path: &str) -> Option<Self> {
        let id = |prefix| path.strip_prefix(prefix)?.parse().ok();
        id("/batches/").map(Self::Batch).or_else(|| id("/transactions/").map(Self::Transaction))
    }

    fn find(&self, store: &dyn BatchQueryStore) -> Result<Vec<StoredBatch>, ApiError> {
        let found = match self {
            Self::Batch(id) => store.find(id),
            Self::Transaction(id) => store.find_by_transaction(id),
        };
        found.map_err(ApiError::read_failed)
    }

    /// The resource as Sawtooth's REST API shows it, from the bytes of its batch.
    fn json(&self, bytes: &[u8]) -> Result<Value, DecodeError> {
        let batch = Batch::decode(bytes)?;
        let Self::Transaction(id) = self else { return batch_json(&batch) };
        let id = id.to_string();
        let transaction = batch.transactions.iter().find(|it| it.header_signature == id);
        transaction.map_or(Ok(Value::Null), transaction_json)
    }
}

/// A batch as Sawtooth's REST API shows it, with decoded headers.
fn batch_json(batch: &Batch) -> Result<Value, DecodeError> {
    let header = BatchHeader::decode(&*batch.header)?;
    let transactions: Vec<Value> =
        batch.transactions.iter().map(transaction_json).collect::<Result<_, _>>()?;
    Ok(json!({
        "header": {
            "signer_public_key": header.signer_public_key,
            "transaction_ids": header.transaction_ids,
        },
        "header_signature": batch.header_signature,
        "trace": batch.trace,
        "transactions": transactions,
    }))
}

fn transaction_json(transaction: &Transaction) -> Result<Value, DecodeError> {
    let header = TransactionHeader::decode(&*transaction.header)?;
    Ok(json!({
        "header": {
            "batcher_public_key": header.batcher_public_key,
            "dependencies": header.dependencies,
            "family_name": header.family_name,
            "family_version": header.family_version,
            "inputs": header.inputs,
            "nonce": header.nonce,
            "outputs": header.outputs,
            "payload_sha512": header.payload_sha512,
            "signer_public_key": header.signer_public_key,
        },
        "header_signature": transaction.header_signature,
        "payload": BASE64_STANDARD.encode(&transaction.payload),
    }))
}
