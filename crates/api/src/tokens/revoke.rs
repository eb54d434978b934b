use std::sync::Arc;

use axum::{
    Json,
    extract::{Path, Request, State},
};
use utoipa::ToSchema;

use super::{TokenContext, error::TokenRequestError, json::TokenJson};
use crate::http::{ApiError, PathId, Problems, Query, RequestError};

/// The body of `POST /v1/tokens/{id}/revoke`.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes the body")]
struct RevocationRequest {
    /// Why, for the log.
    reason: String,
    /// Says whether it could be revoked, and revokes nothing.
    dry_run: Option<bool>,
}

/// `POST /v1/tokens/{id}/revoke`.
#[utoipa::path(
    post, path = "/v1/tokens/{id}/revoke", tag = "tokens", operation_id = "revokeToken", summary = "Revoke an access token",
    params(("id" = String, Path, description = "The id or the name of the token, percent-encoded")),
    request_body(content = RevocationRequest),
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
    let fields = &["reason", "dry_run"];
    let (request, mut fields) = context.api.read_json(request, fields).await?;
    Query::parse(request.uri.query())?.refuse_all()?;
    let Path(name) = path.map_err(|_| RequestError::NotFound)?;
    let asked = context.api.actors.take_request(&request, &mut fields)?;
    let named = name.clone();
    let revoked = context.write(move |store| store.revoke_token(&named, &asked)).await?;
    let revoked = revoked.ok_or(TokenRequestError::TokenNotFound(name))?;
    Ok(Json(revoked.token.into()))
}
