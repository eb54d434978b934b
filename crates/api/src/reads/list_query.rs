use std::collections::BTreeSet;

use grid_batch_core::{BatchSelection, Excerpt, ListCursor, PageOrder, Timestamp};
use humantime::{parse_duration, parse_rfc3339};

use crate::http::{
    ApiError, Query,
    page_query::{after, flag, limit},
    parse_states,
};

const PARAMETERS: &[&str] = &[
    "service_id",
    "state",
    "older_than",
    "newer_than",
    "error",
    "error_contains",
    "held",
    "label",
    "order",
    "limit",
    "after",
];

/// What a request for a page of batches asks for.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ListQuery {
    pub(super) selection: BatchSelection,
    pub(super) order: PageOrder,
    pub(super) after: Option<ListCursor>,
    pub(super) limit: usize,
}

impl ListQuery {
    pub(super) fn parse(query: &Query, now: Timestamp) -> Result<Self, ApiError> {
        query.check_names(PARAMETERS)?;
        let states = query.get("state")?.map_or_else(|| Ok(BTreeSet::new()), parse_states)?;
        let selection = BatchSelection {
            service_id: query.service_id()?,
            states,
            stored_from: time(query, "newer_than", now)?,
            stored_before: time(query, "older_than", now)?,
            has_error: flag(query, "error")?,
            error_contains: query.get("error_contains")?.map(str::to_owned),
            held: flag(query, "held")?,
            label: query.get("label")?.map(str::parse).transpose()?,
        };
        Ok(Self { selection, order: order(query)?, after: after(query)?, limit: limit(query)? })
    }
}

/// A time, or an age before now.
fn time(query: &Query, name: &'static str, now: Timestamp) -> Result<Option<Timestamp>, ApiError> {
    let parse = |text: &str| {
        let age = || parse_duration(text).ok().map(|age| now.minus(age));
        parse_time(text).or_else(age).ok_or_else(|| {
            let rule = format!(
                "it is {}; it must be a time such as 2026-11-23T03:00:00Z, or an age such as 90s, 15m or 7d",
                Excerpt::of(text)
            );
            ApiError::invalid_value(name, rule)
        })
    };
    query.get(name)?.map(parse).transpose()
}

fn parse_time(text: &str) -> Option<Timestamp> {
    let time = parse_rfc3339(text).ok()?;
    let since_epoch = time.duration_since(std::time::UNIX_EPOCH).ok()?;
    Some(Timestamp::from_micros(i64::try_from(since_epoch.as_micros()).ok()?))
}

fn order(query: &Query) -> Result<PageOrder, ApiError> {
    match query.get("order")? {
        None | Some("newest") => Ok(PageOrder::NewestFirst),
        Some("oldest") => Ok(PageOrder::OldestFirst),
        Some(text) => {
            let rule = format!("it is {}; it must be newest or oldest", Excerpt::of(text));
            Err(ApiError::invalid_value("order", rule))
        }
    }
}

#[cfg(test)]
mod tests {
    use grid_batch_core::BatchState;

    use super::*;

    fn parse(text: &str) -> Result<ListQuery, ApiError> {
        let now = Timestamp::from_micros(1_000_000_000);
        ListQuery::parse(&Query::parse(Some(text)).unwrap(), now)
    }

    #[test]
    fn every_parameter_is_read() {
        let all = "service_id=a::b&state=new,ended&older_than=10s&newer_than=1970-01-01T00:00:05Z\
                   &error=true&error_contains=x&held=false&label=l&order=oldest&limit=7&after=a-ff";
        let read = parse(all).unwrap();
        let expected = BatchSelection {
            service_id: Some("a::b".parse().unwrap()),
            states: [BatchState::New, BatchState::Invalid, BatchState::Committed].into(),
            stored_from: Some(Timestamp::from_micros(5_000_000)),
            stored_before: Some(Timestamp::from_micros(990_000_000)),
            has_error: Some(true),
            error_contains: Some("x".to_owned()),
            held: Some(false),
            label: Some("l".parse().unwrap()),
        };
        assert_eq!(read.selection, expected);
        let after = ListCursor { number: 10, stored_at: Timestamp::from_micros(255) };
        assert_eq!((read.order, read.after, read.limit), (PageOrder::OldestFirst, Some(after), 7));
        let none = parse("").unwrap();
        assert_eq!((none.order, none.after, none.limit), (PageOrder::NewestFirst, None, 100));
        assert_eq!(none.selection, BatchSelection::default());
    }

    #[test]
    fn wrong_values_are_refused_with_their_rule() {
        for (query, rule) in [
            ("state=fresh", "one or several of new, submitting, delayed, in_doubt, "),
            ("state=", "one or several of"),
            ("older_than=yesterday", "a time such as"),
            ("newer_than=1500-01-01T00:00:00Z", "a time such as"),
            ("error=yes", "true or false"),
            ("held=1", "true or false"),
            ("order=up", "newest or oldest"),
            ("limit=0", "a number from 1 to 1000"),
            ("limit=1001", "a number from 1 to 1000"),
            ("after=last", "`next` of an earlier page"),
            ("label=", "1 to 255 characters"),
            ("colour=blue", "allowed: service_id, state"),
        ] {
            let error = parse(query).unwrap_err().to_string();
            assert!(error.contains(rule), "{query}: {error}");
        }
    }
}
