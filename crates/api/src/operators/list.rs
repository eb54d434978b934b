use std::sync::Arc;

use axum::{
    Json,
    extract::{Request, State},
};
use grid_batch_core::{ActionFilter, OperatorVerb};
use serde::Serialize;

use super::{context::OperatorContext, json::RecordedJson};
use crate::http::{ApiError, Query};

const PARAMETERS: &[&str] = &["actor", "verb", "service_id", "batch_id", "limit", "after"];
const DEFAULT_LIMIT: usize = 100;
const LARGEST_LIMIT: usize = 1_000;

#[derive(Debug, Serialize)]
pub(super) struct ActionsJson {
    data: Vec<RecordedJson>,
    next: Option<String>,
}

/// `GET /v1/operator-actions`: the log, the latest first.
pub(super) async fn get(
    State(context): State<Arc<OperatorContext>>,
    request: Request,
) -> Result<Json<ActionsJson>, ApiError> {
    let (request, _) = request.into_parts();
    let query = Query::parse(request.uri.query())?;
    query.check_names(PARAMETERS)?;
    let filter = ActionFilter {
        operator: query.get("actor")?.map(str::to_owned),
        verb: query.get("verb")?.map(parse_verb).transpose()?,
        service_id: query.service_id()?,
        batch_id: query.get("batch_id")?.map(str::parse).transpose()?,
    };
    let limit = query.get("limit")?.map_or(Ok(DEFAULT_LIMIT), parse_limit)?;
    let before = query.get("after")?.map(parse_cursor).transpose()?;
    let store = Arc::clone(&context.store);
    let read = move || store.actions(&filter, before, limit).map_err(ApiError::read_failed);
    let actions = context.api.reads.run(read).await?;
    let is_full = actions.len() >= limit;
    let next = actions.last().filter(|_| is_full).map(|last| last.id.to_string());
    Ok(Json(ActionsJson { data: actions.into_iter().map(RecordedJson::from).collect(), next }))
}

pub(super) fn parse_verb(text: &str) -> Result<OperatorVerb, ApiError> {
    let invalid = |error: grid_batch_core::OperatorVerbError| ApiError::InvalidValue {
        name: "verb",
        rule: error.to_string(),
    };
    text.parse().map_err(invalid)
}

fn parse_limit(text: &str) -> Result<usize, ApiError> {
    match text.parse() {
        Ok(limit) if (1..=LARGEST_LIMIT).contains(&limit) => Ok(limit),
        _ => {
            let rule = format!("it must be a number from 1 to {LARGEST_LIMIT}");
            Err(ApiError::InvalidValue { name: "limit", rule })
        }
    }
}

fn parse_cursor(text: &str) -> Result<i64, ApiError> {
    let rule = "it must be what `next` of the page before was";
    text.parse().map_err(|_| ApiError::InvalidValue { name: "after", rule: rule.to_owned() })
}
