//! The spans of a batch.

use std::time::SystemTime;

use grid_batch_core::Timestamp;
use grid_batch_core::batches::{BatchState, TraceContext};
use grid_batch_core::events::BatchEvent;
use opentelemetry::{
    InstrumentationScope, KeyValue, SpanId, TraceFlags, TraceId,
    trace::{Event, SpanContext, SpanKind, Status, TraceState},
};
use opentelemetry_sdk::trace::{SpanData, SpanEvents, SpanLinks};
use sha2::{Digest, Sha256};

use crate::steps::{Ended, Phase, Step};

/// Limits on the steps and other events of a batch that are exported: the latest ones.
const MOST_STEPS: usize = 100;
const MOST_EVENTS: usize = 100;

/// The spans of a batch that has ended, the one of the whole batch first. `end` is the event with which it ended. Without
/// an end in the history, there are none.
pub(crate) fn spans(
    trace: &TraceContext,
    end: &BatchEvent,
    history: &[BatchEvent],
) -> Vec<SpanData> {
    let Some(ended) = Ended::read(history) else { return Vec::new() };
    let Some(ids) = Ids::new(trace, end) else { return Vec::new() };
    let left_out = ended.steps.len().saturating_sub(MOST_STEPS);
    let mut spans = vec![ids.of_batch(end, &ended, left_out)];
    spans.extend(ended.steps[left_out..].iter().map(|step| ids.of_step(step)));
    spans
}

/// What the ids of spans are derived from.
struct Ids<'t> {
    trace: &'t TraceContext,
    trace_id: TraceId,
    parent: SpanId,
    state: TraceState,
    service_id: &'t str,
    batch_id: String,
}

impl<'t> Ids<'t> {
    fn new(trace: &'t TraceContext, end: &'t BatchEvent) -> Option<Self> {
        Some(Self {
            trace,
            trace_id: TraceId::from_hex(trace.trace_id()).ok()?,
            parent: SpanId::from_hex(trace.parent_id()).ok()?,
            // Its keys are checked more strictly here. Without the state, the spans are complete.
            state: trace.tracestate().parse().unwrap_or_default(),
            service_id: end.service_id.as_str(),
            batch_id: end.batch_id.to_string(),
        })
    }

    /// The same for each repetition, and another one for each span.
    fn span_id(&self, name: &str, number: usize) -> SpanId {
        let mut hash = Sha256::new();
        for part in [self.trace.traceparent(), self.service_id, &self.batch_id, name] {
            hash.update(part.as_bytes());
            hash.update([0]);
        }
        let hash = hash.chain_update(number.to_be_bytes()).finalize();
        let mut id = [0; 8];
        id.copy_from_slice(&hash[..8]);
        // An id of zeros is invalid.
        id[7] |= u8::from(id == [0; 8]);
        SpanId::from_bytes(id)
    }

    fn of_batch(&self, end: &BatchEvent, ended: &Ended<'_>, left_out: usize) -> SpanData {
        let mut attributes = vec![
            KeyValue::new("grid_batch.service_id", self.service_id.to_owned()),
            KeyValue::new("grid_batch.batch_id", self.batch_id.clone()),
            KeyValue::new("grid_batch.state", ended.last.state.as_str()),
            KeyValue::new("grid_batch.attempts", i64::from(ended.last.attempt)),
        ];
        if left_out > 0 {
            let left_out = i64::try_from(left_out).unwrap_or(i64::MAX);
            attributes.push(KeyValue::new("grid_batch.steps_left_out", left_out));
        }
        if let Some(withdrawal) = &end.withdrawal {
            let name =
                if withdrawal.is_call { "grid_batch.transaction" } else { "grid_batch.withdrawal" };
            attributes.push(KeyValue::new(name, withdrawal.id.clone()));
        }
        SpanData {
            parent_span_id: self.parent,
            parent_span_is_remote: true,
            span_kind: SpanKind::Consumer,
            events: other_events(&ended.others),
            status: status(ended.last.state == BatchState::Invalid, ended.last),
            ..self.span("batch", 1, ended.first.at, ended.last.at, attributes)
        }
    }

    fn of_step(&self, step: &Step<'_>) -> SpanData {
        let Step { phase, number, start, end, has_failed } = *step;
        let mut attributes = vec![
            KeyValue::new("grid_batch.batch_id", self.batch_id.clone()),
            KeyValue::new("grid_batch.state", end.state.as_str()),
            KeyValue::new("grid_batch.attempt", i64::from(end.attempt)),
        ];
        let instance = end.instance.clone();
        attributes.extend(instance.map(|name| KeyValue::new("grid_batch.instance", name)));
        let kind = if phase == Phase::Submit { SpanKind::Client } else { SpanKind::Internal };
        SpanData {
            span_kind: kind,
            status: status(has_failed, end),
            ..self.span(phase.name(), number, start, end.at, attributes)
        }
    }

    /// A span within the one of the batch.
    fn span(
        &self,
        name: &'static str,
        number: usize,
        start: Timestamp,
        end: Timestamp,
        attributes: Vec<KeyValue>,
    ) -> SpanData {
        let (id, state) = (self.span_id(name, number), self.state.clone());
        SpanData {
            span_context: SpanContext::new(self.trace_id, id, TraceFlags::SAMPLED, false, state),
            parent_span_id: self.span_id("batch", 1),
            parent_span_is_remote: false,
            span_kind: SpanKind::Internal,
            name: name.into(),
            start_time: system_time(start),
            // The clock of the database may have been set back.
            end_time: system_time(end.max(start)),
            attributes,
            dropped_attributes_count: 0,
            events: SpanEvents::default(),
            links: SpanLinks::default(),
            status: Status::Unset,
            instrumentation_scope: InstrumentationScope::builder("grid-batch")
                .with_version(env!("CARGO_PKG_VERSION"))
                .build(),
        }
    }
}

fn other_events(others: &[&BatchEvent]) -> SpanEvents {
    let left_out = others.len().saturating_sub(MOST_EVENTS);
    let mut events = SpanEvents::default();
    events.events = others[left_out..].iter().map(|event| span_event(event)).collect();
    events.dropped_count = u32::try_from(left_out).unwrap_or(u32::MAX);
    events
}

fn span_event(event: &BatchEvent) -> Event {
    let mut attributes = vec![KeyValue::new("grid_batch.state", event.state.as_str())];
    attributes.extend(event.detail.clone().map(|text| KeyValue::new("grid_batch.detail", text)));
    Event::new(event.kind.as_str(), system_time(event.at), attributes, 0)
}

fn status(has_failed: bool, end: &BatchEvent) -> Status {
    if has_failed { Status::error(end.detail.clone().unwrap_or_default()) } else { Status::Unset }
}

fn system_time(time: Timestamp) -> SystemTime {
    SystemTime::UNIX_EPOCH + time.since(Timestamp::default())
}

#[cfg(test)]
pub(crate) mod test_history {
    use grid_batch_core::ItemId;
    use grid_batch_core::events::{EventId, EventKind};

    use super::*;

    /// The trace of the batch of [`history`].
    pub(crate) const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    /// Events of one batch, a microsecond apart.
    pub(crate) fn history(events: &[(EventKind, BatchState)]) -> Vec<BatchEvent> {
        let mut attempt = 0;
        let event = |(at, (kind, state)): (i64, &(EventKind, BatchState))| {
            attempt += u32::from(*kind == EventKind::Submitted);
            BatchEvent {
                id: EventId { group: at, position: 0 },
                service_id: "a::b".parse().unwrap(),
                batch_id: ItemId::from_bytes([7; 64]),
                kind: *kind,
                state: *state,
                attempt,
                detail: Some(format!("detail {at}")),
                at: Timestamp::from_micros(at),
                instance: Some("north".to_owned()),
                withdrawal: None,
                trace: Some(PARENT.parse().unwrap()),
            }
        };
        (0..).zip(events).map(event).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use grid_batch_core::events::EventKind;
    use proptest::prelude::*;

    use super::{
        test_history::{PARENT, history},
        *,
    };

    fn spans_of(history: &[BatchEvent]) -> Vec<SpanData> {
        spans(&PARENT.parse().unwrap(), history.last().unwrap(), history)
    }

    #[test]
    fn spans_are_in_the_trace_of_the_request() {
        let history = history(&[
            (EventKind::Accepted, BatchState::New),
            (EventKind::Held, BatchState::New),
            (EventKind::Submitted, BatchState::Submitting),
            (EventKind::Answered, BatchState::Pending),
            (EventKind::Status, BatchState::Committed),
        ]);
        let spans = spans_of(&history);
        let names: Vec<&str> = spans.iter().map(|span| span.name.as_ref()).collect();
        assert_eq!(names, ["batch", "queue", "submit", "confirm"]);
        let batch = &spans[0];
        assert_eq!(batch.parent_span_id.to_string(), "00f067aa0ba902b7");
        assert_eq!(batch.events[0].name, "held");
        assert_eq!(batch.status, Status::Unset);
        assert_eq!(batch.end_time, system_time(Timestamp::from_micros(4)));
        for span in &spans {
            let context = &span.span_context;
            assert_eq!(context.trace_id().to_string(), "4bf92f3577b34da6a3ce929d0e0e4736");
            let is_child = span.parent_span_id == batch.span_context.span_id();
            assert_eq!(is_child, span.name != "batch");
        }
    }

    #[test]
    fn failure_has_the_reason() {
        let spans = spans_of(&history(&[
            (EventKind::Accepted, BatchState::New),
            (EventKind::Submitted, BatchState::Submitting),
            (EventKind::Answered, BatchState::Invalid),
        ]));
        assert_eq!(spans[0].status, Status::error("detail 2"));
        assert_eq!(spans[2].status, Status::error("detail 2"));
    }

    #[test]
    fn many_attempts_are_limited_to_the_latest() {
        let mut events = vec![(EventKind::Accepted, BatchState::New)];
        for _ in 0..300 {
            events.push((EventKind::Submitted, BatchState::Submitting));
            events.push((EventKind::Answered, BatchState::Delayed));
            events.push((EventKind::Held, BatchState::Delayed));
        }
        events.push((EventKind::Decided, BatchState::Invalid));
        let spans = spans_of(&history(&events));
        assert_eq!(spans.len(), 1 + MOST_STEPS);
        assert!(spans[0].attributes.contains(&KeyValue::new("grid_batch.steps_left_out", 501)));
        assert_eq!((spans[0].events.len(), spans[0].events.dropped_count), (MOST_EVENTS, 200));
        assert_eq!(spans.last().unwrap().end_time, spans[0].end_time);
    }

    fn any_history() -> impl Strategy<Value = Vec<BatchEvent>> {
        let event =
            (prop::sample::select(&EventKind::ALL[..]), prop::sample::select(&BatchState::ALL[..]));
        prop::collection::vec(event, 1..30).prop_map(|events| history(&events))
    }

    proptest! {
        /// Also of histories that cannot be: the ids are different, the same again, and the steps are within the batch.
        #[test]
        fn spans_of_any_history_have_ids_of_their_own(history in any_history()) {
            let (once, again) = (spans_of(&history), spans_of(&history));
            prop_assert_eq!(&once, &again);
            let ids: HashSet<SpanId> = once.iter().map(|span| span.span_context.span_id()).collect();
            prop_assert_eq!(ids.len(), once.len());
            let has_ended = history.iter().any(|event| event.state.is_terminal());
            prop_assert_eq!(has_ended, !once.is_empty());
            for span in &once {
                prop_assert!(span.start_time <= span.end_time);
                prop_assert!(once[0].start_time <= span.start_time && span.end_time <= once[0].end_time);
            }
        }
    }
}
