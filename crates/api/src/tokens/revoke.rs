use std::sync::Arc;

use axum::{
    Json,
    extract::{Request, State},
};

use super::{TokenContext, error::TokenRequestError, json::TokenJson};
use crate::{
    http::{ApiError, NoParams, PathId, Problems, path_text},
    state::ActionRequest,
};

/// `POST /v1/tokens/{id}/revoke`.
#[utoipa::path(
    post, path = "/v1/tokens/{id}/revoke", tag = "tokens", operation_id = "revokeToken", summary = "Revoke an access token",
    params(("id" = String, Path, description = "The id or the name of the token, percent-encoded")),
    request_body(content = ActionRequest),
    responses(
        (status = 200, description = "The token: every server refuses it within seconds", body = TokenJson),
        Problems,
    ),
)]
pub(super) async fn post(
    State(context): State<Arc<TokenContext>>,
    path: PathId,
    request: Request,
) -> Result<Json<TokenJson>, ApiError> {
    let (asked, ActionRequest { .. }, NoParams {}) = context.api.read_action(request).await?;
    let name = path_text(path)?;
    let named = name.clone();
    let revoked = context.store.write(move |store| store.revoke_token(&named, &asked)).await?;
    let revoked = revoked.ok_or(TokenRequestError::TokenNotFound(name))?;
    Ok(Json(TokenJson::new(&revoked.token)))
}
