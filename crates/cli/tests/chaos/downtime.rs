//! The time in which services made no progress although they had open batches.

use std::{
    collections::{HashMap, HashSet},
    time::Duration,
};

use grid_batch_core::{ServiceId, Timestamp};
use grid_batch_ledger_sim::Entry;

use crate::{clients::Promise, event_log::TimeSpan};

/// A time in which a service had open batches and the ledger ended none of them.
#[derive(Debug, Clone)]
pub struct ServiceDowntime {
    pub service: ServiceId,
    pub span: TimeSpan,
}

/// The downtimes of all services.
pub fn downtimes(promises: &[Promise], record: &[Entry]) -> Vec<ServiceDowntime> {
    let mut changes: HashMap<&ServiceId, Vec<(Timestamp, i64)>> = HashMap::new();
    for Promise { batch, since, .. } in promises {
        changes.entry(&batch.service_id).or_default().push((*since, 1));
    }
    let mut ended = HashSet::new();
    for entry in record.iter().filter(|entry| ended.insert((&entry.service_id, entry.batch_id))) {
        changes.entry(&entry.service_id).or_default().push((entry.time, -1));
    }
    changes.into_iter().flat_map(|(service, changes)| service_downtimes(service, changes)).collect()
}

/// The changes are those of the number of open batches.
fn service_downtimes(
    service: &ServiceId,
    mut changes: Vec<(Timestamp, i64)>,
) -> Vec<ServiceDowntime> {
    changes.sort();
    let mut open = 0;
    let mut since = Timestamp::default();
    let mut downtimes = Vec::new();
    for (time, change) in changes {
        if change < 0 {
            if open > 0 {
                downtimes.push(ServiceDowntime { service: service.clone(), span: (since, time) });
            }
            since = time;
        } else if open <= 0 {
            since = time;
        }
        open += change;
    }
    downtimes
}

impl ServiceDowntime {
    /// Its duration without the parts that lie in these spans.
    pub fn duration_outside(&self, spans: &[TimeSpan]) -> Duration {
        let (start, end) = self.span;
        let mut spans: Vec<_> =
            spans.iter().map(|span| (span.0.max(start), span.1.min(end))).collect();
        spans.sort();
        let (mut duration, mut covered_until) = (Duration::ZERO, start);
        for (from, until) in spans.into_iter().filter(|(from, until)| from < until) {
            duration += from.since(covered_until);
            covered_until = covered_until.max(until);
        }
        duration + end.since(covered_until)
    }

    pub fn overlaps(&self, other: TimeSpan) -> bool {
        other.0 < self.span.1 && self.span.0 < other.1
    }
}
