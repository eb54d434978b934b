use std::str::FromStr;

use grid_batch_core::Excerpt;

use super::{ApiError, Query};

const DEFAULT_LIMIT: usize = 100;
const MAX_LIMIT: usize = 1_000;

/// Limit on the number of items of a page.
pub(crate) fn limit(query: &Query) -> Result<usize, ApiError> {
    let Some(text) = query.get("limit")? else { return Ok(DEFAULT_LIMIT) };
    text.parse().ok().filter(|limit| (1..=MAX_LIMIT).contains(limit)).ok_or_else(|| {
        let rule =
            format!("it is {}; it must be a number from 1 to {MAX_LIMIT}", Excerpt::of(text));
        ApiError::InvalidValue { name: "limit", rule }
    })
}

/// The position after which a page starts: `next` of the page before.
pub(crate) fn after<T: FromStr>(query: &Query) -> Result<Option<T>, ApiError> {
    let parse = |text: &str| {
        text.parse().map_err(|_| ApiError::InvalidValue {
            name: "after",
            rule: format!("it is {}; it must be `next` of an earlier page", Excerpt::of(text)),
        })
    };
    query.get("after")?.map(parse).transpose()
}

/// A parameter that is `true` or `false`.
pub(crate) fn flag(query: &Query, name: &'static str) -> Result<Option<bool>, ApiError> {
    let parse = |text: &str| match text {
        "true" => Ok(true),
        "false" => Ok(false),
        text => {
            let rule = format!("it is {}; it must be true or false", Excerpt::of(text));
            Err(ApiError::InvalidValue { name, rule })
        }
    };
    query.get(name)?.map(parse).transpose()
}
