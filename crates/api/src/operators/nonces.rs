//! What operators decide about the nonces of a gas admin.

use std::sync::Arc;

use axum::extract::{Path, Request, State};
use grid_batch_core::operators::{OperatorTarget, OperatorVerb};
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    OperatorContext,
    act::{Answer, IdPath, act_on_fields},
    json::DoneJson,
    requests::{NonceRangeRequest, PaidNonceRequest, StartNonceRequest},
};
use crate::http::{ApiError, JsonObject, Problems, RequestError};

macro_rules! verbs_of_nonces {
    ($($handler:ident $path:literal $verb:ident $body:ident $fields:ident $operation:literal $summary:literal;)*) => {$(
        #[utoipa::path(
            post, path = $path, tag = "operators", operation_id = $operation, summary = $summary,
            params(("id" = String, Path, description = "The id of the gas admin's service, percent-encoded")),
            request_body(content = $body),
            responses((status = 200, description = "What was done, or would be", body = DoneJson), Problems),
        )]
        async fn $handler(State(context): State<Arc<OperatorContext>>, path: IdPath, request: Request) -> Answer {
            act_on_fields(context, request, $fields, OperatorVerb::$verb, |fields| target(path, fields)).await
        }
    )*};
}

const RANGE: &[&str] = &["reason", "dry_run", "first", "last"];
const PAID: &[&str] = &["reason", "dry_run", "nonce", "withdrawal"];
const START: &[&str] = &["reason", "dry_run", "nonce"];

verbs_of_nonces! {
    elsewhere "/v1/services/{id}/nonces/elsewhere" NoncesElsewhere NonceRangeRequest RANGE "decideNonces"
        "Decide that undecided nonces were used for no open withdrawal";
    paid "/v1/services/{id}/nonces/paid" PayNonce PaidNonceRequest PAID "decidePaidNonce"
        "Decide that an undecided nonce was used for a withdrawal";
    start "/v1/services/{id}/nonces/start" StartNonce StartNonceRequest START "startNonce"
        "Decide which nonce of a gas admin is the next one";
    fill "/v1/services/{id}/nonces/fill" FillNonces NonceRangeRequest RANGE "fillNonces"
        "Have missing nonces filled with empty transfers";
}

fn target(path: IdPath, fields: &mut JsonObject) -> Result<OperatorTarget, ApiError> {
    let Path(id) = path.map_err(|_| RequestError::NotFound)?;
    let service_id = id.parse()?;
    let (first, last) = if fields.has("nonce") {
        let nonce = fields.u64("nonce")?;
        if fields.has("withdrawal") {
            let paid = fields.string("withdrawal")?.parse()?;
            return Ok(OperatorTarget::PaidNonce { service_id, nonce, paid });
        }
        (nonce, nonce)
    } else {
        (fields.u64("first")?, fields.u64("last")?)
    };
    if first > last || i64::try_from(last).is_err() {
        let rule = "it must be a nonce, and not below first".to_owned();
        return Err(ApiError::invalid_value("last", rule));
    }
    Ok(OperatorTarget::Nonces { service_id, first, last })
}

/// The routes of the verbs.
pub(super) fn routes() -> OpenApiRouter<Arc<OperatorContext>> {
    OpenApiRouter::new()
        .routes(routes!(elsewhere))
        .routes(routes!(paid))
        .routes(routes!(start))
        .routes(routes!(fill))
}
