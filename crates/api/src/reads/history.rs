use std::{sync::Arc, time::Duration};

use axum::{Json, extract::State};
use grid_batch_core::queries::Sample;
use grid_batch_core::{BatchResult, Excerpt, Timestamp};
use humantime::parse_duration;
use serde::{Deserialize, Deserializer, Serialize, de};
use utoipa::{IntoParams, ToSchema};

use super::ReadContext;
use crate::http::{ApiError, PageJson, Params, Problems};

/// Reads the samples since a time, in periods of a length.
pub(crate) type HistorySource =
    dyn Fn(Timestamp, Duration) -> BatchResult<Vec<Sample>> + Send + Sync;

/// About how many points an answer has at most.
const MOST_POINTS: u32 = 360;

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct HistoryParams {
    /// The length of the history, such as `15m`: up to `24h`, by default `1h`
    #[param(value_type = Option<String>)]
    range: Option<Range>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Range(Duration);

impl<'de> Deserialize<'de> for Range {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let range = parse_duration(&text).ok();
        let range = range.filter(|range| (Sample::PERIOD..=Sample::KEPT).contains(range));
        range.map(Self).ok_or_else(|| {
            de::Error::custom(format!(
                "it is {}; it must be a time from 10s to 24h",
                Excerpt::of(&text)
            ))
        })
    }
}

impl Range {
    /// The length of the periods: a multiple of that of the samples.
    fn period(self) -> Duration {
        let shortest = (self.0 / MOST_POINTS).as_secs().div_ceil(Sample::PERIOD.as_secs());
        Sample::PERIOD * u32::try_from(shortest.max(1)).unwrap_or(u32::MAX)
    }
}

/// What all instances did in a period, and what was open then.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct HistoryPoint {
    /// How long ago the period began.
    seconds_ago: f64,
    /// How long it is. The latest one may not be over.
    seconds: f64,
    /// The largest number of open batches.
    open: u64,
    /// The largest age of the oldest open batch; 0 if none was open.
    oldest_seconds: f64,
    /// How many attempts to submit a batch began.
    submitted: u64,
    /// How many batches ended as committed.
    committed: u64,
    /// How many batches ended as invalid.
    invalid: u64,
}

impl HistoryPoint {
    fn new(sample: &Sample, now: Timestamp, period: Duration) -> Self {
        Self {
            seconds_ago: now.since(sample.at).as_secs_f64(),
            seconds: period.as_secs_f64(),
            open: sample.open,
            oldest_seconds: sample.oldest.as_secs_f64(),
            submitted: sample.attempts,
            committed: sample.committed,
            invalid: sample.invalid,
        }
    }
}

/// `GET /v1/history`.
#[utoipa::path(
    get, path = "/v1/history", tag = "services", operation_id = "getHistory", summary = "Depth, age and counts of up to 24 hours",
    params(HistoryParams),
    responses(
        (status = 200, description = "What all instances did, the oldest first, without periods in which none ran", body = PageJson<HistoryPoint>),
        Problems,
    ),
)]
pub(super) async fn get(
    State(context): State<Arc<ReadContext>>,
    Params(params): Params<HistoryParams>,
) -> Result<Json<PageJson<HistoryPoint>>, ApiError> {
    let range = params.range.unwrap_or(Range(Duration::from_secs(60 * 60)));
    let Some(source) = context.sources.history.clone() else {
        return Ok(Json(PageJson { data: Vec::new(), next: None }));
    };
    let (now, period) = (context.api.clock.now(), range.period());
    let since = now.minus(range.0);
    let samples = context.api.read(move || source(since, period)).await?;
    let data = samples.iter().map(|sample| HistoryPoint::new(sample, now, period)).collect();
    Ok(Json(PageJson { data, next: None }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_have_few_periods() {
        for (seconds, period) in [(10, 10), (3_600, 10), (6 * 3_600, 60), (86_400, 240)] {
            let range = Range(Duration::from_secs(seconds));
            assert_eq!(range.period(), Duration::from_secs(period), "{seconds}");
        }
    }
}
