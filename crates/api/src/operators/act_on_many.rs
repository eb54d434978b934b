use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use axum::{
    Json,
    extract::{Request, State},
};
use grid_batch_core::batches::StoredBatch;
use grid_batch_core::operators::{OperatorTarget, OperatorVerb};
use grid_batch_core::queries::{ListCursor, ListCursorError};
use serde::Serialize;
use utoipa::ToSchema;

use super::{
    act_on_each::{Acted, act_on_each},
    context::{OperatorContext, batch},
    json::{DoneJson, RefusedJson},
    list::parse_verb,
    requests::ManyRequest,
    selection::{self, Selected, Selection},
};
use crate::{
    access::Caller,
    http::{ApiError, JsonObject, Problems},
};

const FIELDS: &[&str] = &["verb", "filter", "batches", "reason", "dry_run", "limit", "after"];
const BATCH_FIELDS: &[&str] = &["service_id", "batch_id", "attempt"];
const DEFAULT_LIMIT: u32 = 100;
const LARGEST_LIMIT: u32 = 1_000;
/// Fits the largest number of batches.
const BODY_LIMIT: usize = 512 * 1024;
/// Batches that are not reached in this time are refused.
const TIME_LIMIT: Duration = Duration::from_secs(20);

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
    data: Vec<DoneJson>,
    refused: Vec<RefusedJson>,
    /// The field `after` of the request that continues; null if no more batches match.
    next: Option<String>,
}

/// Which batches a request is about.
enum Targets {
    Named(Vec<OperatorTarget>),
    Selected { selection: Selection, after: Option<ListCursor>, limit: usize },
}

/// `POST /v1/batches/actions`: a verb about many batches, each in a commit of its own.
#[utoipa::path(
    post, path = "/v1/batches/actions", tag = "operators", operation_id = "actOnBatches", summary = "Act on many open batches",
    request_body(content = ManyRequest),
    responses((status = 200, description = "What was done, or would be", body = ManyJson), Problems),
)]
pub(super) async fn post(
    State(context): State<Arc<OperatorContext>>,
    request: Request,
) -> Result<Json<ManyJson>, ApiError> {
    let (request, mut fields) = context.api.read_long_json(request, FIELDS, BODY_LIMIT).await?;
    let verb = take_verb(&mut fields)?;
    let asked = context.api.actors.take_request(&request, &mut fields)?;
    let targets = take_targets(&mut fields)?;
    let decides = verb.decides_attempt() && !asked.dry_run;
    if decides && matches!(targets, Targets::Selected { .. }) {
        let rule = "it is missing; a decision about attempts names each batch and its attempt, as the dry run with \
                    the filter lists them";
        return Err(ApiError::invalid_value("batches", rule));
    }
    targets.check(Caller::of(&request)?)?;
    let shared = Arc::clone(&context);
    let work = move || {
        let started = Instant::now();
        let (targets, next) = targets.find(&shared)?;
        let actions = targets.into_iter().map(|target| asked.clone().action(verb, target));
        let has_time = || started.elapsed() < TIME_LIMIT;
        let Acted { done, refused } =
            act_on_each(actions, has_time, |action| shared.act_and_name(action))?;
        Ok(Json(ManyJson { data: done, refused, next: next.map(|next| next.to_string()) }))
    };
    context.writes_of_many.run(work).await
}

impl Targets {
    /// Refuses a caller that may not act on all of them.
    fn check(&self, caller: &Caller) -> Result<(), ApiError> {
        match self {
            Self::Selected { selection, .. } => caller.check_selected(selection.service_id()),
            Self::Named(targets) => {
                targets.iter().try_for_each(|target| caller.check_selected(target.service_id()))
            }
        }
    }

    /// The batches, and after which one there may be more.
    fn find(
        self,
        context: &OperatorContext,
    ) -> Result<(Vec<OperatorTarget>, Option<ListCursor>), ApiError> {
        match self {
            Self::Named(targets) => Ok((targets, None)),
            Self::Selected { selection, after, limit } => {
                let Selected { batches, next } = selection.find(&*context.queries, after, limit)?;
                Ok((batches.into_iter().map(target_of).collect(), next))
            }
        }
    }
}

fn target_of(StoredBatch { service_id, batch_id, progress, .. }: StoredBatch) -> OperatorTarget {
    batch(service_id, batch_id, Some(progress.attempts))
}

fn take_targets(fields: &mut JsonObject) -> Result<Targets, ApiError> {
    let after = fields.optional_string("after")?.as_deref().map(parse_after).transpose()?;
    let limit = fields.optional_u32("limit")?;
    let named = fields.objects("batches", BATCH_FIELDS)?;
    if named.is_empty() {
        let limit = limit.unwrap_or(DEFAULT_LIMIT);
        if !(1..=LARGEST_LIMIT).contains(&limit) {
            let rule = format!("it must be a number from 1 to {LARGEST_LIMIT}");
            return Err(ApiError::invalid_value("limit", rule));
        }
        let selection = Selection::read(fields.object("filter", selection::FIELDS)?)?;
        return Ok(Targets::Selected { selection, after, limit: limit as usize });
    }
    let rule = if fields.has("filter") || after.is_some() || limit.is_some() {
        "it is given with filter, limit or after; a request either names batches or selects them"
            .to_owned()
    } else if named.len() > LARGEST_LIMIT as usize {
        format!("it has {} batches; it must not have more than {LARGEST_LIMIT}", named.len())
    } else {
        return named.into_iter().map(take_batch).collect::<Result<_, _>>().map(Targets::Named);
    };
    Err(ApiError::invalid_value("batches", rule))
}

fn take_batch(mut fields: JsonObject) -> Result<OperatorTarget, ApiError> {
    let service_id = fields.string("service_id")?.parse()?;
    let batch_id = fields.string("batch_id")?.parse()?;
    Ok(batch(service_id, batch_id, fields.optional_u32("attempt")?))
}

fn take_verb(fields: &mut JsonObject) -> Result<OperatorVerb, ApiError> {
    let verb = parse_verb(&fields.string("verb")?)?;
    if VERBS.contains(&verb) {
        return Ok(verb);
    }
    let rule = format!("it must be one of {}", VERBS.map(OperatorVerb::as_str).join(", "));
    Err(ApiError::invalid_value("verb", rule))
}

fn parse_after(text: &str) -> Result<ListCursor, ApiError> {
    let invalid = |error: ListCursorError| ApiError::invalid_value("after", error.to_string());
    text.parse().map_err(invalid)
}
