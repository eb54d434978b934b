use std::sync::Arc;

use axum::{Json, extract::State, http::request::Parts};
use base64::{Engine, prelude::BASE64_STANDARD};
use grid_batch_core::batches::{BatchContent, TransactionContent};

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
        /// Its first 4,096 bytes, in base64.
        payload: String =
            BASE64_STANDARD.encode(&content.payload[..content.payload.len().min(MOST_BYTES)]),
    }
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
