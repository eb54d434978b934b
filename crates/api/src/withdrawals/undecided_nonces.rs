use std::sync::Arc;

use axum::{Json, extract::State};
use grid_batch_core::ServiceId;
use grid_batch_withdrawals::UnsettledNonce;
use serde::Serialize;
use utoipa::ToSchema;

use super::WithdrawalContext;
use crate::http::{ApiError, NoParams, PageJson, Params, Problems};

/// A nonce of which it cannot be decided what the chain used it for.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct UndecidedNonceJson {
    service_id: String,
    nonce: u64,
    reason: String,
}

/// `GET /v1/nonces`: the nonces about which an operator has to decide.
#[utoipa::path(
    get, path = "/v1/nonces", tag = "operators", operation_id = "listUndecidedNonces", summary = "Nonces that wait for a decision",
    responses((status = 200, description = "The nonces", body = PageJson<UndecidedNonceJson>), Problems),
)]
pub(crate) async fn get(
    State(context): State<Arc<WithdrawalContext>>,
    _: Params<NoParams>,
) -> Result<Json<PageJson<UndecidedNonceJson>>, ApiError> {
    let nonces = context.store.read(|store| store.undecided_nonces()).await?;
    let json = |(service_id, nonce): (ServiceId, UnsettledNonce)| UndecidedNonceJson {
        service_id: service_id.to_string(),
        nonce: nonce.nonce,
        reason: nonce.undecided.unwrap_or_default(),
    };
    Ok(Json(PageJson::all(nonces, json)))
}
