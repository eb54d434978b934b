use std::sync::Arc;

use axum::{
    extract::State,
    http::{header::CONTENT_TYPE, request::Parts},
    response::{IntoResponse, Response},
};

use super::ReadContext;
use crate::{
    batches::{BatchParams, BatchRequestError, NamedBatch},
    http::{ApiError, Bytes, PathId, Problems, read_params},
};

/// `GET /v1/batches/{id}/bytes`: the batch as it was sent, and as it is sent to the ledger.
#[utoipa::path(
    get, path = "/v1/batches/{id}/bytes", tag = "batches", operation_id = "getBatchBytes", summary = "A batch as it was submitted",
    params(
        ("id" = String, Path, description = "The id of the batch, or at least its first 8 characters"),
        BatchParams,
    ),
    responses(
        (status = 200, description = "The bytes", body = inline(Bytes), content_type = "application/octet-stream"),
        Problems,
    ),
)]
pub(super) async fn get(
    State(context): State<Arc<ReadContext>>,
    path: PathId,
    request: Parts,
) -> Result<Response, ApiError> {
    let params: BatchParams = read_params(&request)?;
    let named = NamedBatch::parse(path, params.service_id.as_deref(), &request)?;
    let bytes = context.bytes_of(&named).await?;
    Ok(([(CONTENT_TYPE, "application/octet-stream")], bytes).into_response())
}

impl ReadContext {
    /// The batch as it was submitted.
    pub(super) async fn bytes_of(&self, named: &NamedBatch) -> Result<Vec<u8>, ApiError> {
        let batch = self.find(named).await?;
        let batches = Arc::clone(&self.batches);
        let read = move || batches.serialized_batch(&batch.service_id, &batch.batch_id);
        // Retention may have removed it since it was found.
        let missing = || BatchRequestError::BatchNotFound(named.id.to_string());
        Ok(self.api.read(read).await?.ok_or_else(missing)?)
    }
}
