use std::sync::Arc;

use axum::{
    Json,
    extract::{Request, State},
};
use grid_batch_core::ServiceId;
use grid_batch_withdrawals::UnsettledNonce;
use serde::Serialize;
use utoipa::ToSchema;

use super::WithdrawalContext;
use crate::http::{ApiError, Problems, Query};

/// A nonce of which it cannot be decided what the chain used it for.
#[derive(Debug, Serialize, ToSchema)]
struct UndecidedNonceJson {
    service_id: String,
    nonce: u64,
    reason: String,
}

/// All of them.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct UndecidedNoncesJson {
    data: Vec<UndecidedNonceJson>,
}

/// `GET /v1/nonces`: the nonces about which an operator has to decide.
#[utoipa::path(
    get, path = "/v1/nonces", tag = "operators", operation_id = "listUndecidedNonces", summary = "Nonces that wait for a decision",
    responses((status = 200, description = "The nonces", body = UndecidedNoncesJson), Problems),
)]
pub(crate) async fn get(
    State(context): State<Arc<WithdrawalContext>>,
    request: Request,
) -> Result<Json<UndecidedNoncesJson>, ApiError> {
    Query::parse(request.uri().query())?.check_names(&[])?;
    let store = Arc::clone(&context.store);
    let read = move || store.undecided_nonces().map_err(ApiError::read_failed);
    let nonces = context.api.reads.run(read).await?;
    let json = |(service_id, nonce): (ServiceId, UnsettledNonce)| UndecidedNonceJson {
        service_id: service_id.to_string(),
        nonce: nonce.nonce,
        reason: nonce.undecided.unwrap_or_default(),
    };
    Ok(Json(UndecidedNoncesJson { data: nonces.into_iter().map(json).collect() }))
}
