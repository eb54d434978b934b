use std::sync::Arc;

use axum::{
    Json,
    extract::{Request, State},
    http::request::Parts,
};
use grid_batch_core::batches::StoredBatch;
use grid_batch_core::operators::{OperatorAction, OperatorTarget, OperatorVerb};

use super::{
    being_sent::{BatchSendingWait, LONGEST_WAIT, SendingWait},
    context::OperatorContext,
    json::DoneJson,
    requests::{AttemptActionRequest, BatchEnd, EndRequest},
};
use crate::{
    access::Caller,
    batches::{BatchParams, NamedBatch},
    http::{ApiError, NoParams, PathId, Problems, WaitSeconds, read_params},
};

pub(super) type Answer = Result<Json<DoneJson>, ApiError>;

/// `POST /v1/batches/{id}/end`: a decision about how a batch has ended.
#[utoipa::path(
    post, path = "/v1/batches/{id}/end", tag = "operators", operation_id = "endBatch", summary = "Decide how a batch has ended",
    params(
        ("id" = String, Path, description = "The id of the batch, or at least its first 8 characters"),
        BatchParams,
    ),
    request_body(content = EndRequest),
    responses((status = 200, description = "What was done, or would be", body = DoneJson), Problems),
)]
pub(super) async fn end_batch(
    State(context): State<Arc<OperatorContext>>,
    path: PathId,
    request: Request,
) -> Answer {
    let (request, body) = context.api.read_json(request).await?;
    let EndRequest { reason, dry_run, attempt, r#as: end } = body;
    let verb = match end {
        BatchEnd::Committed => OperatorVerb::EndCommitted,
        BatchEnd::Invalid => OperatorVerb::EndInvalid,
    };
    let action = AttemptActionRequest { reason, dry_run, attempt };
    act_on_batch(&context, path, &request, verb, action).await
}

/// A verb about something other than a batch.
pub(super) async fn act_on_target(
    context: &Arc<OperatorContext>,
    request: &Parts,
    action: OperatorAction,
) -> Answer {
    let wait = if action.verb.stops_sending() {
        read_params::<SendingWait>(request)?.wait
    } else {
        let NoParams {} = read_params(request)?;
        None
    };
    Caller::of(request)?.check_selected(action.target.service_id())?;
    carry_out(context, wait, |_| Ok((action, false))).await
}

/// A verb about the batch that the path and the parameters name.
pub(super) async fn act_on_batch(
    context: &Arc<OperatorContext>,
    path: PathId,
    request: &Parts,
    verb: OperatorVerb,
    AttemptActionRequest { reason, dry_run, attempt }: AttemptActionRequest,
) -> Answer {
    let (service_id, wait) = if verb.stops_sending() {
        let BatchSendingWait { service_id, wait } = read_params(request)?;
        (service_id, wait)
    } else {
        (read_params::<BatchParams>(request)?.service_id, None)
    };
    let named = NamedBatch::parse(path, service_id.as_deref(), request)?;
    let asked = context.api.actors.request(request, reason, dry_run)?;
    if attempt.is_none() && verb.decides_attempt() {
        let rule = "it is missing; it must be the number of the attempt that you looked at";
        return Err(ApiError::invalid_value("attempt", rule));
    }
    carry_out(context, wait, move |context| {
        let StoredBatch { service_id, batch_id, progress, .. } = context.find(&named)?;
        let target = OperatorTarget::Batch { service_id, batch_id, attempt };
        let may_arrive = progress.state.awaits_poller() || progress.earlier_may_arrive;
        let is_late = verb == OperatorVerb::EndInvalid && may_arrive;
        Ok((asked.action(verb, target), is_late))
    })
    .await
}

/// Does the action and, if the request says so, waits until none of the batches that it stops is being sent. Also
/// takes whether the ledger may apply the batch after it has ended.
async fn carry_out(
    context: &Arc<OperatorContext>,
    wait: Option<WaitSeconds>,
    action: impl FnOnce(&OperatorContext) -> Result<(OperatorAction, bool), ApiError> + Send + 'static,
) -> Answer {
    let shared = Arc::clone(context);
    let work = move || {
        let (action, may_arrive) = action(&shared)?;
        let done = shared.act_and_name(&action)?;
        let done = if may_arrive { done.with_late_arrival() } else { done };
        Ok((Arc::new(action), done))
    };
    let (action, done) = context.store.writes.run(work).await?;
    let done = match wait {
        Some(wait) => context.wait_until_sent(&action, done, wait.at_most(LONGEST_WAIT)).await?,
        None => done,
    };
    Ok(Json(done))
}
