//! `GET /batches/ID` of Sawtooth's REST API, for a batch that the node does not have yet.

use axum::{Json, http::request::Parts};
use base64::{Engine, prelude::BASE64_STANDARD};
use grid_batch_core::{BatchState, HeaderId, StoredBatch};
use grid_batch_protocol::{
    Batch, BatchHeader, DecodeError, Message, Transaction, TransactionHeader,
};
use serde_json::{Value, json};

use super::Forwarding;
use crate::http::{ApiError, link};

impl Forwarding {
    /// The batch that the request asks for, from its stored bytes: if it is open and the node says that it
    /// does not have it, or if no node answers and it is not known to be invalid. `answer` is the status of
    /// the node's answer.
    pub(super) async fn open_batch(
        &self,
        request: &Parts,
        answer: Option<u16>,
    ) -> Result<Option<Json<Value>>, ApiError> {
        let is_absent = match answer {
            Some(404) => true,
            Some(_) => return Ok(None),
            None => false,
        };
        let id = request.uri.path().strip_prefix("/batches/").and_then(|id| id.parse().ok());
        let Some(id): Option<HeaderId> = id else { return Ok(None) };
        let store = self.store.clone();
        let read = move || {
            let is_shown = |batch: &StoredBatch| match is_absent {
                true => !batch.progress.state.is_terminal(),
                false => batch.progress.state != BatchState::Invalid,
            };
            let found = store.find(&id).map_err(ApiError::read_failed)?;
            let Some(batch) = found.into_iter().find(is_shown) else { return Ok(None) };
            store.serialized_batch(&batch.service_id, &id).map_err(ApiError::read_failed)
        };
        let Some(bytes) = self.api.reads.run(read).await? else { return Ok(None) };
        let data = batch_json(&bytes).map_err(|_| ApiError::Internal)?;
        let link = link::to_request(request, self.api.local_addr);
        Ok(Some(Json(json!({ "data": data, "link": link }))))
    }
}

/// A batch as Sawtooth's REST API shows it, with decoded headers.
fn batch_json(bytes: &[u8]) -> Result<Value, DecodeError> {
    let batch = Batch::decode(bytes)?;
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
