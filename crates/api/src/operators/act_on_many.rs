use std::{sync::Arc, time::Duration};

use axum::{
    Json,
    extract::{Request, State},
};
use grid_batch_core::{
    Excerpt, ListCursor, ListCursorError, Operator, OperatorAction, OperatorVerb, StoredBatch,
    Timestamp,
};
use serde::Serialize;
use utoipa::ToSchema;

use super::{
    context::{OperatorContext, batch, take_reason},
    json::{DoneJson, TargetJson},
    list::parse_verb,
    requests::ManyRequest,
    selection::{self, Selected, Selection},
};
use crate::{
    access::Caller,
    http::{ApiError, JsonObject, Problems, rfc3339},
};

const FIELDS: &[&str] = &["verb", "filter", "reason", "dry_run", "limit", "after", "as_of"];
const DEFAULT_LIMIT: u32 = 100;
const LARGEST_LIMIT: u32 = 1_000;

/// By how much the clocks of instances may differ, which store when a batch was submitted.
const CLOCK_DIFFERENCE: Duration = Duration::from_secs(2);

/// The verbs that are possible for many batches at once.
const VERBS: [OperatorVerb; 7] = [
    OperatorVerb::Retry,
    OperatorVerb::Resubmit,
    OperatorVerb::EndCommitted,
    OperatorVerb::EndInvalid,
    OperatorVerb::Cancel,
    OperatorVerb::Hold,
    OperatorVerb::Release,
];

/// What was done, or would be.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ManyJson {
    /// When the batches were looked for, or a moment before: what a decision about them is as of.
    read_at: String,
    data: Vec<DoneJson>,
    refused: Vec<RefusedJson>,
    /// The field `after` of the request that continues; null if no more batches match.
    next: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
struct RefusedJson {
    #[serde(flatten)]
    target: TargetJson,
    reason: String,
}

/// What a request asks for.
struct Wanted {
    verb: OperatorVerb,
    reason: String,
    dry_run: bool,
    operator: Operator,
}

/// `POST /v1/batches/actions`: a verb about all batches that a filter selects, each in a commit of its own.
#[utoipa::path(
    post, path = "/v1/batches/actions", tag = "operators", operation_id = "actOnBatches", summary = "Act on all open batches that a filter selects",
    request_body(content = ManyRequest),
    responses((status = 200, description = "What was done, or would be", body = ManyJson), Problems),
)]
pub(super) async fn post(
    State(context): State<Arc<OperatorContext>>,
    request: Request,
) -> Result<Json<ManyJson>, ApiError> {
    let (request, mut fields) = context.read_json(request, FIELDS).await?;
    let wanted = Wanted {
        verb: take_verb(&mut fields)?,
        reason: take_reason(&mut fields)?,
        dry_run: fields.boolean("dry_run", false)?,
        operator: context.operator(&request)?,
    };
    let as_of = fields.optional_string("as_of")?.as_deref().map(parse_time).transpose()?;
    if wanted.verb.decides_attempt() && !wanted.dry_run && as_of.is_none() {
        let rule = "it is missing; it must be `read_at` of the dry run that you looked at";
        return Err(ApiError::InvalidValue { name: "as_of", rule: rule.to_owned() });
    }
    let after = fields.optional_string("after")?.as_deref().map(parse_after).transpose()?;
    let limit = fields.optional_u32("limit")?.unwrap_or(DEFAULT_LIMIT);
    if !(1..=LARGEST_LIMIT).contains(&limit) {
        let rule = format!("it must be a number from 1 to {LARGEST_LIMIT}");
        return Err(ApiError::InvalidValue { name: "limit", rule });
    }
    let selection = Selection::read(fields.object("filter", selection::FIELDS)?, as_of)?;
    Caller::of(&request)?.check_selected(selection.service_id())?;
    let shared = Arc::clone(&context);
    let work = move || {
        let read_at = shared.api.clock.now().minus(CLOCK_DIFFERENCE);
        let selected = selection.find(&shared.pages, after, limit as usize)?;
        act(&shared, wanted, selected, read_at)
    };
    Ok(Json(context.writes.run(work).await?))
}

fn act(
    context: &OperatorContext,
    wanted: Wanted,
    Selected { batches, next }: Selected,
    read_at: Timestamp,
) -> Result<ManyJson, ApiError> {
    let Wanted { verb, reason, dry_run, operator } = wanted;
    let (read_at, next) = (rfc3339(read_at), next.map(|next| next.to_string()));
    let mut answer = ManyJson { read_at, data: Vec::new(), refused: Vec::new(), next };
    for StoredBatch { service_id, batch_id, progress, .. } in batches {
        let target = batch(service_id, batch_id, Some(progress.attempts));
        let (reason, operator) = (Some(reason.clone()), operator.clone());
        let action = OperatorAction { verb, target, reason, operator, dry_run };
        match context.act(&action) {
            Ok(effect) => answer.data.push(DoneJson::new(&action, effect)),
            Err(error @ (ApiError::ActionRefused(_) | ApiError::UnknownTarget { .. })) => {
                let target = TargetJson::from(&action.target);
                answer.refused.push(RefusedJson { target, reason: error.to_string() });
            }
            // What was done before is in the log.
            Err(error) => return Err(error),
        }
    }
    Ok(answer)
}

fn take_verb(fields: &mut JsonObject) -> Result<OperatorVerb, ApiError> {
    let verb = parse_verb(&fields.string("verb")?)?;
    if VERBS.contains(&verb) {
        return Ok(verb);
    }
    let rule = format!("it must be one of {}", VERBS.map(OperatorVerb::as_str).join(", "));
    Err(ApiError::InvalidValue { name: "verb", rule })
}

fn parse_after(text: &str) -> Result<ListCursor, ApiError> {
    let invalid =
        |error: ListCursorError| ApiError::InvalidValue { name: "after", rule: error.to_string() };
    text.parse().map_err(invalid)
}

fn parse_time(text: &str) -> Result<Timestamp, ApiError> {
    humantime::parse_rfc3339(text).map(Timestamp::from).map_err(|_| {
        let shown = Excerpt::of(text);
        let rule = format!("it is {shown}; it must be a time such as 2026-11-22T09:30:00Z");
        ApiError::InvalidValue { name: "as_of", rule }
    })
}
