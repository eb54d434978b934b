use std::sync::Arc;

use axum::{Json, extract::State};
use grid_batch_core::tokens::{StoredToken, TokenId};

use super::{TokenContext, json::StoredTokenJson};
use crate::http::{ApiError, PageJson, PageParams, PageStart, Params, Problems};

/// `GET /v1/tokens`.
#[utoipa::path(
    get, path = "/v1/tokens", tag = "tokens", operation_id = "listTokens", summary = "List the access tokens",
    params(PageParams),
    responses((status = 200, description = "A page of them, without their secrets", body = PageJson<StoredTokenJson>), Problems),
)]
pub(super) async fn get(
    State(context): State<Arc<TokenContext>>,
    Params(PageParams { limit, after }): Params<PageParams>,
) -> Result<Json<PageJson<StoredTokenJson>>, ApiError> {
    let after: Option<TokenId> = after.map(PageStart::cursor).transpose()?;
    let tokens = context.store.read(move |store| store.tokens(after, limit.0 + 1)).await?;
    let now = context.api.clock.now();
    let cursor = |last: &StoredToken| last.token.id.to_string();
    Ok(Json(PageJson::cut(tokens, limit, cursor, |stored| StoredTokenJson::new(&stored, now))))
}
