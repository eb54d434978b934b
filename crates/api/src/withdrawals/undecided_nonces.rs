use std::sync::Arc;

use axum::{Json, extract::State};
use grid_batch_core::ServiceId;
use grid_batch_withdrawals::UnsettledNonce;

use super::WithdrawalContext;
use crate::http::{ApiError, NoParams, PageJson, Params, Problems, json_types};

json_types! {
    /// A nonce of which it cannot be decided what the chain used it for.
    pub(crate) struct UndecidedNonceJson(gas_admin: ServiceId, unsettled: UnsettledNonce) {
        service_id: String = gas_admin.to_string(),
        nonce: u64 = unsettled.nonce,
        reason: String = unsettled.undecided.unwrap_or_default(),
    }
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
    Ok(Json(PageJson::all(nonces, |(service, nonce)| UndecidedNonceJson::new(service, nonce))))
}
