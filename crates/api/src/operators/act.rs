use std::sync::Arc;

use axum::{
    Json,
    extract::{Path, Request, State, rejection::PathRejection},
};
use grid_batch_core::batches::StoredBatch;
use grid_batch_core::claims::InstanceId;
use grid_batch_core::operators::{OperatorAction, OperatorTarget, OperatorVerb};

use super::{
    being_sent::{BatchSendingWait, SendingWait, WaitSeconds},
    context::{OperatorContext, batch},
    json::DoneJson,
    requests::EndRequest,
};
use crate::{
    access::Caller,
    batches::{BatchParams, NamedBatch},
    http::{ApiError, JsonObject, Problems, Query, RequestError},
};

pub(super) type Answer = Result<Json<DoneJson>, ApiError>;
pub(super) type IdPath = Result<Path<String>, PathRejection>;

/// `POST /v1/batches/{id}/...`: a verb about one batch.
pub(super) async fn act_on_batch(
    State(context): State<Arc<OperatorContext>>,
    path: IdPath,
    request: Request,
    verb: OperatorVerb,
) -> Answer {
    let known: &[&str] = if verb.decides_attempt() {
        &["reason", "dry_run", "attempt"]
    } else {
        &["reason", "dry_run"]
    };
    act(context, path, request, known, move |_| Ok(verb)).await
}

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
    path: IdPath,
    request: Request,
) -> Answer {
    let known = &["reason", "dry_run", "attempt", "as"];
    act(context, path, request, known, |fields| match fields.string("as")?.as_str() {
        "committed" => Ok(OperatorVerb::EndCommitted),
        "invalid" => Ok(OperatorVerb::EndInvalid),
        _ => {
            let rule = "it must be committed or invalid".to_owned();
            Err(ApiError::invalid_value("as", rule))
        }
    })
    .await
}

/// `POST /v1/services/{id}/...`: a verb about a service.
pub(super) async fn act_on_service(
    State(context): State<Arc<OperatorContext>>,
    path: IdPath,
    request: Request,
    verb: OperatorVerb,
) -> Answer {
    act_on(context, request, verb, || {
        let Path(id) = path.map_err(|_| RequestError::NotFound)?;
        Ok(OperatorTarget::Service(id.parse()?))
    })
    .await
}

/// `POST /v1/instances/{id}/...`: a verb about an instance.
pub(super) async fn act_on_instance(
    State(context): State<Arc<OperatorContext>>,
    path: IdPath,
    request: Request,
    verb: OperatorVerb,
) -> Answer {
    act_on(context, request, verb, || {
        let Path(id) = path.map_err(|_| RequestError::NotFound)?;
        if id.contains(char::is_control) {
            return Err(RequestError::UnknownTarget { kind: "instance" }.into());
        }
        Ok(OperatorTarget::Instance(InstanceId::new(id)))
    })
    .await
}

/// `POST /v1/...`: a verb about all services.
pub(super) async fn act_on_all(
    State(context): State<Arc<OperatorContext>>,
    request: Request,
    verb: OperatorVerb,
) -> Answer {
    act_on(context, request, verb, || Ok(OperatorTarget::AllServices)).await
}

async fn act_on(
    context: Arc<OperatorContext>,
    request: Request,
    verb: OperatorVerb,
    target: impl FnOnce() -> Result<OperatorTarget, ApiError>,
) -> Answer {
    act_on_fields(context, request, &["reason", "dry_run"], verb, |_| target()).await
}

/// A verb about something that the path and the `known` fields of the body name.
pub(super) async fn act_on_fields(
    context: Arc<OperatorContext>,
    request: Request,
    known: &'static [&'static str],
    verb: OperatorVerb,
    target: impl FnOnce(&mut JsonObject) -> Result<OperatorTarget, ApiError>,
) -> Answer {
    let (request, mut fields) = context.api.read_json(request, known).await?;
    let query = Query::parse(request.uri.query())?;
    let wait = if verb.stops_sending() {
        query.params::<SendingWait>()?.wait
    } else {
        query.refuse_all().map(|()| None)?
    };
    let target = target(&mut fields)?;
    Caller::of(&request)?.check_selected(target.service_id())?;
    let action = context.api.actors.take_request(&request, &mut fields)?.action(verb, target);
    carry_out(&context, wait, |_| Ok((action, false))).await
}

async fn act(
    context: Arc<OperatorContext>,
    path: IdPath,
    request: Request,
    known: &'static [&'static str],
    verb: impl FnOnce(&mut JsonObject) -> Result<OperatorVerb, ApiError>,
) -> Answer {
    let (request, mut fields) = context.api.read_json(request, known).await?;
    let query = Query::parse(request.uri.query())?;
    let named = NamedBatch::parse(path, query.get("service_id")?, &request)?;
    let verb = verb(&mut fields)?;
    let wait = if verb.stops_sending() {
        query.params::<BatchSendingWait>()?.wait
    } else {
        query.params::<BatchParams>().map(|_| None)?
    };
    let asked = context.api.actors.take_request(&request, &mut fields)?;
    let attempt = fields.optional_u32("attempt")?;
    if attempt.is_none() && verb.decides_attempt() {
        let rule = "it is missing; it must be the number of the attempt that you looked at";
        return Err(ApiError::invalid_value("attempt", rule));
    }
    carry_out(&context, wait, move |context| {
        let StoredBatch { service_id, batch_id, progress, .. } = context.find(&named)?;
        let target = batch(service_id, batch_id, attempt);
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
    let (action, done) = context.writes.run(work).await?;
    let done = match wait {
        Some(WaitSeconds(wait)) => context.wait_until_sent(&action, done, wait).await?,
        None => done,
    };
    Ok(Json(done))
}
