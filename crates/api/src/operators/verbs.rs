//! A handler for each verb.

use std::sync::Arc;

use axum::extract::{Request, State};
use grid_batch_core::operators::OperatorVerb;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    OperatorContext,
    act::{Answer, IdPath, act_on_all, act_on_batch, act_on_instance, act_on_service},
    being_sent::{BatchSendingWait, SendingWait},
    json::DoneJson,
    requests::{ActionRequest, AttemptActionRequest},
};
use crate::{batches::BatchParams, http::Problems};

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
        async fn $handler(state: State<Arc<OperatorContext>>, path: IdPath, request: Request) -> Answer {
            act_on_batch(state, path, request, OperatorVerb::$verb).await
        }
    )*};
}

macro_rules! verbs_with_id {
    ($act:ident, $id:literal: $($handler:ident $path:literal $verb:ident $operation:literal $summary:literal $($more:ident)?;)*) => {$(
        #[utoipa::path(
            post, path = $path, tag = "operators", operation_id = $operation, summary = $summary,
            params(("id" = String, Path, description = $id), $($more)?),
            request_body(content = ActionRequest),
            responses((status = 200, description = "What was done, or would be", body = DoneJson), Problems),
        )]
        async fn $handler(state: State<Arc<OperatorContext>>, path: IdPath, request: Request) -> Answer {
            $act(state, path, request, OperatorVerb::$verb).await
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
        async fn $handler(state: State<Arc<OperatorContext>>, request: Request) -> Answer {
            act_on_all(state, request, OperatorVerb::$verb).await
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
    act_on_service, "The id of the service, percent-encoded":
    release_claim "/v1/claims/{id}/release" ReleaseClaim "releaseClaim"
        "Make the owner of a service release it";
    pause "/v1/services/{id}/pause" Pause "pauseService"
        "Start no new submission of a service" SendingWait;
    resume "/v1/services/{id}/resume" Resume "resumeService"
        "End the pause of a service";
}

verbs_with_id! {
    act_on_instance, "The id or the name of the instance":
    drain "/v1/instances/{id}/drain" Drain "drainInstance"
        "Have an instance give up its services and take no others" SendingWait;
    end_drain "/v1/instances/{id}/resume" Resume "resumeInstance"
        "End the drain of an instance";
}

verbs_of_all_services! {
    pause_all "/v1/pause" Pause "pauseAllServices"
        "Start no new submission of any service" SendingWait;
    resume_all "/v1/resume" Resume "resumeAllServices"
        "End the pause of all services";
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
        .routes(routes!(pause_all))
        .routes(routes!(resume_all))
}
