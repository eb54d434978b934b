//! A handler for each verb.

use std::sync::Arc;

use axum::extract::{Request, State};
use grid_batch_core::claims::InstanceId;
use grid_batch_core::operators::{OperatorTarget, OperatorVerb};
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    OperatorContext,
    act::{Answer, act_on_batch, act_on_target},
    being_sent::{BatchSendingWait, SendingWait},
    json::DoneJson,
    requests::{
        AttemptActionRequest, NonceDecision, NonceRangeRequest, PaidNonceRequest, StartNonceRequest,
    },
};
use crate::{
    batches::BatchParams,
    http::{ApiError, PathId, Problems, RequestError, parse_path_id, path_text},
    state::ActionRequest,
};

macro_rules! verbs_of_batches {
    ($($handler:ident $path:literal $verb:ident $body:ident $params:ident $operation:literal $summary:literal;)*) => {$(
        #[utoipa::path(
            post, path = $path, tag = "operators", operation_id = $operation, summary = $summary,
            params(
                ("id" = String, Path, description = "The id of the batch, or at least its first 8 characters"),
                $params,
            ),
            request_body(content = $body),
            responses((status = 200, description = "What was done, or would be", body = DoneJson), Problems),
        )]
        async fn $handler(State(context): State<Arc<OperatorContext>>, path: PathId, request: Request) -> Answer {
            let (request, body): (_, $body) = context.api.read_json(request).await?;
            act_on_batch(&context, path, &request, OperatorVerb::$verb, body.into()).await
        }
    )*};
}

macro_rules! verbs_with_id {
    ($target:ident, $id:literal: $($handler:ident $path:literal $verb:ident $body:ident $operation:literal $summary:literal $($more:ident)?;)*) => {$(
        #[utoipa::path(
            post, path = $path, tag = "operators", operation_id = $operation, summary = $summary,
            params(("id" = String, Path, description = $id), $($more)?),
            request_body(content = $body),
            responses((status = 200, description = "What was done, or would be", body = DoneJson), Problems),
        )]
        async fn $handler(State(context): State<Arc<OperatorContext>>, path: PathId, request: Request) -> Answer {
            let (request, body): (_, $body) = context.api.read_json(request).await?;
            let target = $target(path, &body)?;
            let asked = context.api.actors.request(&request, body.reason, body.dry_run)?;
            act_on_target(&context, &request, asked.action(OperatorVerb::$verb, target)).await
        }
    )*};
}

macro_rules! verbs_of_all_services {
    ($($handler:ident $path:literal $verb:ident $operation:literal $summary:literal $($more:ident)?;)*) => {$(
        #[utoipa::path(
            post, path = $path, tag = "operators", operation_id = $operation, summary = $summary,
            params($($more)?),
            request_body(content = ActionRequest),
            responses((status = 200, description = "What was done, or would be", body = DoneJson), Problems),
        )]
        async fn $handler(State(context): State<Arc<OperatorContext>>, request: Request) -> Answer {
            let (request, body): (_, ActionRequest) = context.api.read_json(request).await?;
            let asked = context.api.actors.request(&request, body.reason, body.dry_run)?;
            let action = asked.action(OperatorVerb::$verb, OperatorTarget::AllServices);
            act_on_target(&context, &request, action).await
        }
    )*};
}

verbs_of_batches! {
    retry "/v1/batches/{id}/retry" Retry ActionRequest BatchParams "retryBatch"
        "Try a delayed batch now";
    resubmit "/v1/batches/{id}/resubmit" Resubmit AttemptActionRequest BatchParams "resubmitBatch"
        "Send a batch again, because the ledger does not have it";
    cancel "/v1/batches/{id}/cancel" Cancel ActionRequest BatchParams "cancelBatch"
        "End a batch that is certainly not at the ledger";
    hold "/v1/batches/{id}/hold" Hold ActionRequest BatchSendingWait "holdBatch"
        "Hold a batch until a decision";
    release "/v1/batches/{id}/release" Release ActionRequest BatchParams "releaseBatch"
        "End the hold of a batch";
    continue_after "/v1/batches/{id}/continue" Continue ActionRequest BatchParams "continueAfterBatch"
        "Let the batches that an invalid one stops continue";
    end_following "/v1/batches/{id}/end-following" EndFollowing ActionRequest BatchParams "endFollowingBatches"
        "End the batches that an invalid one stops";
}

verbs_with_id! {
    service, "The id of the service, percent-encoded":
    release_claim "/v1/claims/{id}/release" ReleaseClaim ActionRequest "releaseClaim"
        "Make the owner of a service release it";
    pause "/v1/services/{id}/pause" Pause ActionRequest "pauseService"
        "Start no new submission of a service" SendingWait;
    resume "/v1/services/{id}/resume" Resume ActionRequest "resumeService"
        "End the pause of a service";
}

verbs_with_id! {
    instance, "The id or the name of the instance":
    drain "/v1/instances/{id}/drain" Drain ActionRequest "drainInstance"
        "Have an instance give up its services and take no others" SendingWait;
    end_drain "/v1/instances/{id}/resume" Resume ActionRequest "resumeInstance"
        "End the drain of an instance";
}

verbs_with_id! {
    nonces, "The id of the gas admin's service, percent-encoded":
    elsewhere "/v1/services/{id}/nonces/elsewhere" NoncesElsewhere NonceRangeRequest "decideNonces"
        "Decide that undecided nonces were used for nothing that is open";
    paid "/v1/services/{id}/nonces/paid" PayNonce PaidNonceRequest "decidePaidNonce"
        "Decide that an undecided nonce was used for a withdrawal or transaction";
    start "/v1/services/{id}/nonces/start" StartNonce StartNonceRequest "startNonce"
        "Decide which nonce of a gas admin is the next one";
    fill "/v1/services/{id}/nonces/fill" FillNonces NonceRangeRequest "fillNonces"
        "Have missing nonces filled with empty transfers";
}

verbs_of_all_services! {
    pause_all "/v1/pause" Pause "pauseAllServices"
        "Start no new submission of any service" SendingWait;
    resume_all "/v1/resume" Resume "resumeAllServices"
        "End the pause of all services";
}

fn service(path: PathId, _: &ActionRequest) -> Result<OperatorTarget, ApiError> {
    parse_path_id(path).map(OperatorTarget::Service)
}

fn instance(path: PathId, _: &ActionRequest) -> Result<OperatorTarget, ApiError> {
    let id = path_text(path)?;
    if id.contains(char::is_control) {
        return Err(RequestError::UnknownTarget { kind: "instance" }.into());
    }
    Ok(OperatorTarget::Instance(InstanceId::new(id)))
}

fn nonces(path: PathId, decision: &impl NonceDecision) -> Result<OperatorTarget, ApiError> {
    decision.target(parse_path_id(path)?)
}

/// The routes of the verbs.
pub(super) fn routes() -> OpenApiRouter<Arc<OperatorContext>> {
    OpenApiRouter::new()
        .routes(routes!(retry))
        .routes(routes!(resubmit))
        .routes(routes!(cancel))
        .routes(routes!(hold))
        .routes(routes!(release))
        .routes(routes!(continue_after))
        .routes(routes!(end_following))
        .routes(routes!(release_claim))
        .routes(routes!(pause))
        .routes(routes!(resume))
        .routes(routes!(drain))
        .routes(routes!(end_drain))
        .routes(routes!(elsewhere))
        .routes(routes!(paid))
        .routes(routes!(start))
        .routes(routes!(fill))
        .routes(routes!(pause_all))
        .routes(routes!(resume_all))
}
