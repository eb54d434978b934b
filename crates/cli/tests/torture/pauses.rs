//! How long services stood still while they had something to do.

use std::{
    collections::{HashMap, HashSet},
    time::Duration,
};

use grid_batch_core::{ServiceId, Timestamp};
use grid_batch_ledger_sim::Entry;

use crate::{clients::Promise, diary::Span};

/// A time in which a service had open batches, and the ledger did nothing for it.
#[derive(Debug, Clone)]
pub struct Pause {
    pub service: ServiceId,
    pub span: Span,
}

/// All pauses of all services.
pub fn pauses(promises: &[Promise], record: &[Entry]) -> Vec<Pause> {
    let mut steps: HashMap<&ServiceId, Vec<(Timestamp, i64)>> = HashMap::new();
    for Promise { made, since } in promises {
        steps.entry(&made.service_id).or_default().push((*since, 1));
    }
    let mut ended = HashSet::new();
    for entry in record.iter().filter(|entry| ended.insert((&entry.service_id, entry.batch_id))) {
        steps.entry(&entry.service_id).or_default().push((entry.time, -1));
    }
    steps.into_iter().flat_map(|(service, steps)| pauses_of(service, steps)).collect()
}

fn pauses_of(service: &ServiceId, mut steps: Vec<(Timestamp, i64)>) -> Vec<Pause> {
    steps.sort();
    let mut open = 0;
    let mut since = Timestamp::default();
    let mut pauses = Vec::new();
    for (time, step) in steps {
        if step < 0 {
            if open > 0 {
                pauses.push(Pause { service: service.clone(), span: (since, time) });
            }
            since = time;
        } else if open <= 0 {
            since = time;
        }
        open += step;
    }
    pauses
}

impl Pause {
    /// How long it was outside of these.
    pub fn outside(&self, spans: &[Span]) -> Duration {
        let (begin, end) = self.span;
        let mut spans: Vec<_> =
            spans.iter().map(|span| (span.0.max(begin), span.1.min(end))).collect();
        spans.sort();
        let (mut duration, mut after) = (Duration::ZERO, begin);
        for (from, until) in spans.into_iter().filter(|(from, until)| from < until) {
            duration += from.since(after);
            after = after.max(until);
        }
        duration + end.since(after)
    }
}
