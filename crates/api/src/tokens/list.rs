use std::sync::Arc;

use axum::{
    Json,
    extract::{Request, State},
};
use grid_batch_core::tokens::TokenId;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::{TokenContext, json::StoredTokenJson};
use crate::http::{ApiError, PageLimit, PageStart, Problems, Query};

/// A page of tokens.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct TokensJson {
    data: Vec<StoredTokenJson>,
    /// The `after` of the next page; null: there is none.
    next: Option<String>,
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct TokensParams {
    /// Limit of the items of the page: 1 to 1,000, by default 100
    #[serde(default)]
    #[param(value_type = Option<usize>)]
    limit: PageLimit,
    /// `next` of the page before
    #[param(value_type = Option<String>)]
    after: Option<PageStart<TokenId>>,
}

/// `GET /v1/tokens`.
#[utoipa::path(
    get, path = "/v1/tokens", tag = "tokens", operation_id = "listTokens", summary = "List the access tokens",
    params(TokensParams),
    responses((status = 200, description = "A page of them, without their secrets", body = TokensJson), Problems),
)]
pub(super) async fn get(
    State(context): State<Arc<TokenContext>>,
    request: Request,
) -> Result<Json<TokensJson>, ApiError> {
    let params: TokensParams = Query::parse(request.uri().query())?.params()?;
    let after = params.after.map(|PageStart(id)| id);
    let (PageLimit(limit), store) = (params.limit, Arc::clone(&context.store));
    let read = move || store.tokens(after, limit + 1).map_err(ApiError::read_failed);
    let mut tokens = context.api.reads.run(read).await?;
    let next = params.limit.cut(&mut tokens).map(|last| last.token.id.to_string());
    let now = context.api.clock.now();
    let data = tokens.into_iter().map(|stored| StoredTokenJson::new(stored, now)).collect();
    Ok(Json(TokensJson { data, next }))
}
