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
use grid_batch_core::queries::{BatchSelection, ListCursor};
use serde::Serialize;
use utoipa::ToSchema;

use super::{
    act_on_each::{Acted, act_on_each},
    context::OperatorContext,
    json::{DoneJson, RefusedJson},
    requests::{BatchRequest, FilterRequest, ManyRequest},
    selection::{find_selected, read_filter},
};
use crate::{
    access::Caller,
    http::{ApiError, PageLimit, PageStart, Problems, parse_value},
};

/// How many batches a request names at most.
const MOST_BATCHES: usize = 1_000;
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
    Selected { selection: BatchSelection, after: Option<ListCursor>, limit: usize },
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
    let read = context.api.read_long_json(request, BODY_LIMIT).await?;
    let (request, body, _): (_, ManyRequest, _) = read;
    let verb = parse_possible_verb(&body.verb)?;
    let asked = context.api.actors.request(&request, body.reason, body.dry_run)?;
    let batches = body.batches.unwrap_or_default();
    let targets = Targets::read(batches, body.filter, body.limit, body.after)?;
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
    fn read(
        batches: Vec<BatchRequest>,
        filter: Option<FilterRequest>,
        limit: Option<PageLimit>,
        after: Option<PageStart>,
    ) -> Result<Self, ApiError> {
        let rule = match (batches.len(), filter) {
            (0, None) => {
                let rule = "it is missing, and so is batches; a request names batches or selects them";
                return Err(ApiError::invalid_value("filter", rule));
            }
            (0, Some(filter)) => {
                let selection = read_filter(filter)?;
                let after = after.map(PageStart::cursor).transpose()?;
                let PageLimit(limit) = limit.unwrap_or_default();
                return Ok(Self::Selected { selection, after, limit });
            }
            (_, filter) if filter.is_some() || after.is_some() || limit.is_some() => {
                "it is given with filter, limit or after; a request either names batches or selects them"
                    .to_owned()
            }
            (count, _) if count > MOST_BATCHES => {
                format!("it has {count} batches; it must not have more than {MOST_BATCHES}")
            }
            _ => return batches.iter().map(target).collect::<Result<_, _>>().map(Self::Named),
        };
        Err(ApiError::invalid_value("batches", rule))
    }

    /// Refuses a caller that may not act on all of them.
    fn check(&self, caller: &Caller) -> Result<(), ApiError> {
        match self {
            Self::Selected { selection, .. } => {
                caller.check_selected(selection.service_id.as_ref())
            }
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
                let (batches, next) = find_selected(&selection, &*context.queries, after, limit)?;
                Ok((batches.into_iter().map(target_of).collect(), next))
            }
        }
    }
}

fn target_of(StoredBatch { service_id, batch_id, progress, .. }: StoredBatch) -> OperatorTarget {
    OperatorTarget::Batch { service_id, batch_id, attempt: Some(progress.attempts) }
}

fn target(batch: &BatchRequest) -> Result<OperatorTarget, ApiError> {
    let (service_id, batch_id) = (batch.service_id.parse()?, batch.batch_id.parse()?);
    Ok(OperatorTarget::Batch { service_id, batch_id, attempt: batch.attempt })
}

fn parse_possible_verb(text: &str) -> Result<OperatorVerb, ApiError> {
    let verb: OperatorVerb = parse_value("verb", text)?;
    if VERBS.contains(&verb) {
        return Ok(verb);
    }
    let rule = format!("it must be one of {}", VERBS.map(OperatorVerb::as_str).join(", "));
    Err(ApiError::invalid_value("verb", rule))
}
