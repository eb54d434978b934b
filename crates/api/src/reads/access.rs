use std::{collections::BTreeMap, sync::Arc};

use axum::{Json, extract::State};
use grid_batch_core::tokens::AccessScope;
use serde::Serialize;
use utoipa::ToSchema;

use super::ReadContext;
use crate::{
    access::Caller,
    http::{ApiError, NoParams, Params, Problems},
    parts::ApiParts,
    running::Intake,
};

/// What this server serves beside batches.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
pub(crate) struct Served {
    withdrawals: bool,
    transactions: bool,
    webhooks: bool,
}

impl Served {
    pub(crate) fn of(parts: &ApiParts, intake: &Intake) -> Self {
        let withdrawals = matches!(intake, Intake::Withdrawals(..));
        Self {
            withdrawals,
            transactions: withdrawals && parts.calls.is_some(),
            webhooks: parts.webhooks.is_some(),
        }
    }
}

/// Who sends the request, and what its sender may do here.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct AccessJson {
    /// The token or key; null without access control.
    name: Option<String>,
    /// The services for each scope that the sender has, as patterns.
    #[schema(value_type = BTreeMap<String, Vec<String>>)]
    scopes: BTreeMap<&'static str, Vec<String>>,
    serves: Served,
}

/// `GET /v1/access`.
#[utoipa::path(
    get, path = "/v1/access", tag = "tokens", operation_id = "getAccess", summary = "What the sender of the request may do",
    responses((status = 200, description = "The scopes of the sender", body = AccessJson), Problems),
)]
pub(super) async fn get(
    State(context): State<Arc<ReadContext>>,
    _: Params<NoParams>,
    caller: Caller,
) -> Result<Json<AccessJson>, ApiError> {
    let of = |scope: AccessScope| Some((scope.as_str(), caller.patterns(scope)?));
    let scopes = AccessScope::ALL.into_iter().filter_map(of).collect();
    Ok(Json(AccessJson { name: caller.authorized_name(), scopes, serves: context.serves }))
}
