use std::sync::Arc;

use axum::{Json, extract::State, http::request::Parts};
use base64::{Engine, prelude::BASE64_STANDARD};
use cbor4ii::{
    core::{dec::Read, utils::SliceReader},
    serde::Deserializer,
};
use grid_batch_core::batches::{BatchContent, TransactionContent};
use serde::Deserialize;
use serde_json::Value;

use super::ReadContext;
use crate::{
    batches::{BatchParams, NamedBatch},
    http::{ApiError, PathId, Problems, json_types, read_params},
};

/// How many transactions of a batch are shown, and how much of each payload.
const MOST_TRANSACTIONS: usize = 100;
const MOST_BYTES: usize = 4_096;

json_types! {
    /// What is in a batch.
    pub(super) struct ContentJson(content: Option<BatchContent>, bytes: usize) {
        /// The size of the batch in bytes.
        size: usize = bytes,
        /// The public key of its signer; null if the batch is opaque.
        signer: Option<String> = content.as_ref().map(|content| content.signer.clone()),
        /// How many transactions it has.
        count: usize = content.as_ref().map_or(0, |content| content.transactions.len()),
        /// The first hundred of them.
        transactions: Vec<TransactionContentJson> = transactions(content),
    }

    /// What is in a transaction.
    struct TransactionContentJson(content: TransactionContent) {
        id: String = content.id,
        signer: String = content.signer,
        /// The family that executes the payload, and its version.
        family: String = content.family,
        inputs: Vec<String> = content.inputs,
        outputs: Vec<String> = content.outputs,
        dependencies: Vec<String> = content.dependencies,
        nonce: String = content.nonce,
        /// The size of the payload in bytes.
        payload_size: usize = content.payload.len(),
        /// The payload as JSON, if it is a map or an array in CBOR, not longer than 4,096 bytes.
        #[schema(value_type = Option<Object>)]
        payload_json: Option<Value> = cbor_as_json(&content.payload),
        /// Its first 4,096 bytes, in base64.
        payload: String =
            BASE64_STANDARD.encode(&content.payload[..content.payload.len().min(MOST_BYTES)]),
    }
}

/// Few payloads of other formats are a whole map or array in CBOR, as those of `intkey` are.
fn cbor_as_json(payload: &[u8]) -> Option<Value> {
    let is_short = payload.len() <= MOST_BYTES;
    let mut reader = Deserializer::new(SliceReader::new(payload));
    let value = Value::deserialize(&mut reader).ok().filter(|_| is_short)?;
    let is_whole = reader.into_inner().fill(1).is_ok_and(|rest| rest.as_ref().is_empty());
    (is_whole && (value.is_object() || value.is_array())).then_some(value)
}

fn transactions(content: Option<BatchContent>) -> Vec<TransactionContentJson> {
    let transactions = content.into_iter().flat_map(|content| content.transactions);
    transactions.take(MOST_TRANSACTIONS).map(TransactionContentJson::new).collect()
}

/// `GET /v1/batches/{id}/content`: what the batch does, as far as the format of its ledger tells.
#[utoipa::path(
    get, path = "/v1/batches/{id}/content", tag = "batches", operation_id = "getBatchContent", summary = "Signers, headers and payloads of a batch",
    params(
        ("id" = String, Path, description = "The id of the batch, or at least its first 8 characters"),
        BatchParams,
    ),
    responses((status = 200, description = "The content", body = ContentJson), Problems),
)]
pub(super) async fn get(
    State(context): State<Arc<ReadContext>>,
    path: PathId,
    request: Parts,
) -> Result<Json<ContentJson>, ApiError> {
    let params: BatchParams = read_params(&request)?;
    let named = NamedBatch::parse(path, params.service_id.as_deref(), &request)?;
    let bytes = context.bytes_of(&named).await?;
    let content = context.format.as_ref().and_then(|format| format.content(&bytes));
    Ok(Json(ContentJson::new(content, bytes.len())))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn maps_and_arrays_in_cbor_are_shown_as_json() {
        let set = b"\xa3\x64Verb\x63set\x64Name\x61a\x65Value\x19\x01\x00";
        assert_eq!(cbor_as_json(set), Some(json!({"Verb": "set", "Name": "a", "Value": 256})));
        assert_eq!(cbor_as_json(b"\x82\x01\x20"), Some(json!([1, -1])));
        let long = [&b"\x81\x79\x10\x00"[..], &[b'a'; 4_096]].concat();
        let deep = [[0x81; 4_000].as_slice(), b"\x01"].concat();
        for other in
            [&set[..9], &[&set[..], b"\x01"].concat(), b"\x05", b"set a to 5", b"", &long, &deep]
        {
            assert_eq!(cbor_as_json(other), None, "{other:02x?}");
        }
    }
}
