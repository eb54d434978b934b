use std::time::Duration;

use grid_batch_core::queries::{BatchSelection, ListCursor, PageOrder};
use grid_batch_core::{Excerpt, Timestamp};
use humantime::parse_duration;
use serde::{Deserialize, Deserializer, de};
use utoipa::{IntoParams, ToSchema};

use crate::http::{ApiError, BatchStateFilter, PageLimit, PageStart, Time, parse_states};

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct ListParams {
    /// Batches of this service
    service_id: Option<String>,
    /// Batches of services whose id has this text
    service_contains: Option<String>,
    /// Batches in one of these states; `open` and `ended` stand for all such states
    #[param(value_type = Option<Vec<BatchStateFilter>>, inline)]
    state: Option<Vec<String>>,
    /// Batches that were stored since a time or an age such as `15m`
    #[param(value_type = Option<String>)]
    newer_than: Option<TimeOrAge>,
    /// Batches that were stored before a time or an age such as `7d`
    #[param(value_type = Option<String>)]
    older_than: Option<TimeOrAge>,
    /// Batches with an error, or without one
    error: Option<bool>,
    /// Batches whose error has this text
    error_contains: Option<String>,
    /// Batches that are held for an operator, or the others
    held: Option<bool>,
    /// Batches with this label
    label: Option<String>,
    /// Batches whose label has this text
    label_contains: Option<String>,
    /// Which first; by default the newest
    #[param(value_type = Option<Order>, inline)]
    order: Option<Order>,
    /// Limit of the items of the page: 1 to 1,000, by default 100
    #[param(value_type = Option<usize>, minimum = 1, maximum = 1_000)]
    limit: PageLimit,
    /// `next` of the page before
    #[param(value_type = Option<String>)]
    after: Option<PageStart>,
}

/// What a request for a page of batches asks for.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ListQuery {
    pub(super) selection: BatchSelection,
    pub(super) order: PageOrder,
    pub(super) after: Option<ListCursor>,
    pub(super) limit: usize,
}

impl ListQuery {
    pub(super) fn new(params: ListParams, now: Timestamp) -> Result<Self, ApiError> {
        let selection = BatchSelection {
            service_id: params.service_id.as_deref().map(str::parse).transpose()?,
            service_contains: params.service_contains,
            states: parse_states(params.state.iter().flatten().map(String::as_str))?,
            stored_from: params.newer_than.map(|time| time.before(now)),
            stored_before: params.older_than.map(|time| time.before(now)),
            has_error: params.error,
            error_contains: params.error_contains,
            held: params.held,
            label: params.label.as_deref().map(str::parse).transpose()?,
            label_contains: params.label_contains,
        };
        let order = match params.order {
            None | Some(Order::Newest) => PageOrder::NewestFirst,
            Some(Order::Oldest) => PageOrder::OldestFirst,
        };
        let after = params.after.map(PageStart::cursor).transpose()?;
        Ok(Self { selection, order, after, limit: params.limit.0 })
    }
}

#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum Order {
    Newest,
    Oldest,
}

/// A time, or an age.
#[derive(Debug, Clone, Copy)]
enum TimeOrAge {
    Time(Timestamp),
    Age(Duration),
}

impl TimeOrAge {
    fn before(self, now: Timestamp) -> Timestamp {
        match self {
            Self::Time(time) => time,
            Self::Age(age) => now.minus(age),
        }
    }
}

impl<'de> Deserialize<'de> for TimeOrAge {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let age = || parse_duration(&text).ok().map(Self::Age);
        Time::parse(&text).map(|Time(time)| Self::Time(time)).or_else(age).ok_or_else(|| {
            de::Error::custom(format!(
                "it is {}; it must be a time such as 2026-11-23T03:00:00Z, or an age such as 90s, 15m or 7d",
                Excerpt::of(&text)
            ))
        })
    }
}

#[cfg(test)]
mod tests {
    use grid_batch_core::batches::BatchState;

    use super::*;
    use crate::http::Query;

    fn parse(text: &str) -> Result<ListQuery, ApiError> {
        let now = Timestamp::from_micros(1_000_000_000);
        ListQuery::new(Query::parse(Some(text)).unwrap().params()?, now)
    }

    #[test]
    fn every_parameter_is_read() {
        let all = "service_id=a::b&state=new,ended&older_than=10s&newer_than=1970-01-01T00:00:05Z\
                   &error=true&error_contains=x&held=false&label=l&service_contains=a&label_contains=m&order=oldest&limit=7&after=a-ff";
        let read = parse(all).unwrap();
        let expected = BatchSelection {
            service_id: Some("a::b".parse().unwrap()),
            service_contains: Some("a".to_owned()),
            states: [BatchState::New, BatchState::Invalid, BatchState::Committed].into(),
            stored_from: Some(Timestamp::from_micros(5_000_000)),
            stored_before: Some(Timestamp::from_micros(990_000_000)),
            has_error: Some(true),
            error_contains: Some("x".to_owned()),
            held: Some(false),
            label: Some("l".parse().unwrap()),
            label_contains: Some("m".to_owned()),
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
            ("colour=blue", "allowed: service_id, service_contains, state"),
        ] {
            let error = parse(query).unwrap_err().to_string();
            assert!(error.contains(rule), "{query}: {error}");
        }
    }
}
