//! When nodes did not answer, which explains why a circuit gave a batch up.

use std::{collections::VecDeque, sync::Mutex, time::Duration};

use grid_batch_core::{MonotonicTime, ServiceId};
use grid_batch_support::{BoundedMap, lock};

use crate::subscriptions::EventSource;

/// The times in which nodes did not answer requests about a service.
pub(crate) struct NodeOutages(Mutex<BoundedMap<(ServiceId, EventSource), NodeAnswers>>);

#[derive(Default)]
struct NodeAnswers {
    /// When the first request was sent that was not answered since the last answer.
    silent_since: Option<MonotonicTime>,
    /// The latest outages, the oldest first.
    outages: VecDeque<Outage>,
}

/// A time in which a node did not answer, or the moment at which its event subscription broke.
#[derive(Debug, Clone, Copy)]
struct Outage {
    since: MonotonicTime,
    until: MonotonicTime,
}

impl NodeOutages {
    const LIMIT: usize = 100_000;
    /// How many outages of a node are remembered.
    const REMEMBERED: usize = 8;

    pub(crate) fn new() -> Self {
        Self(Mutex::new(BoundedMap::new(Self::LIMIT)))
    }

    /// Records whether the node answered a request that was sent at `asked_at`.
    pub(crate) fn record(
        &self,
        service: &ServiceId,
        source: EventSource,
        is_answered: bool,
        asked_at: MonotonicTime,
        now: MonotonicTime,
    ) {
        let mut nodes = lock(&self.0);
        let node = nodes.get_or_insert_with(&(service.clone(), source), NodeAnswers::default);
        match is_answered {
            true => {
                if let Some(since) = node.silent_since.take() {
                    node.add(Outage { since, until: now });
                }
            }
            false => node.silent_since = Some(node.silent_since.unwrap_or(asked_at)),
        }
    }

    /// Records that the event subscription of the node broke.
    pub(crate) fn broke(&self, service: &ServiceId, source: EventSource, now: MonotonicTime) {
        let mut nodes = lock(&self.0);
        let node = nodes.get_or_insert_with(&(service.clone(), source), NodeAnswers::default);
        node.add(Outage { since: now, until: now });
    }

    /// Whether the node was away at some time since then.
    pub(crate) fn was_away(
        &self,
        service: &ServiceId,
        source: EventSource,
        since: MonotonicTime,
    ) -> bool {
        self.last_end(service, source).is_some_and(|end| end >= since)
    }

    /// The longest time since `since` in which the node did not answer, and has answered after it.
    pub(crate) fn longest(
        &self,
        service: &ServiceId,
        source: EventSource,
        since: MonotonicTime,
    ) -> Duration {
        let nodes = lock(&self.0);
        let node = nodes.get(&(service.clone(), source));
        let outages = node.into_iter().flat_map(|node| &node.outages);
        outages.map(|outage| outage.until.since(outage.since.max(since))).max().unwrap_or_default()
    }

    /// When the last outage of the node ended.
    pub(crate) fn last_end(
        &self,
        service: &ServiceId,
        source: EventSource,
    ) -> Option<MonotonicTime> {
        let nodes = lock(&self.0);
        let node = nodes.get(&(service.clone(), source))?;
        node.outages.back().map(|outage| outage.until)
    }
}

impl NodeAnswers {
    fn add(&mut self, outage: Outage) {
        if self.outages.len() >= NodeOutages::REMEMBERED {
            self.outages.pop_front();
        }
        self.outages.push_back(outage);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODE: EventSource = EventSource::Node;

    fn at(seconds: u64) -> MonotonicTime {
        MonotonicTime::default().plus(Duration::from_secs(seconds))
    }

    #[test]
    fn outage_lasts_until_the_next_answer() {
        let (outages, service) = (NodeOutages::new(), "a::b".parse().unwrap());
        let record = |is_answered, asked, now| {
            outages.record(&service, NODE, is_answered, at(asked), at(now));
        };
        let longest = |since| outages.longest(&service, NODE, at(since)).as_secs();
        record(true, 1, 1);
        record(false, 10, 22);
        record(false, 25, 37);
        assert_eq!(longest(0), 0, "it lasts");
        record(true, 40, 50);
        assert_eq!([longest(0), longest(30), longest(60)], [40, 20, 0]);
        assert_eq!(
            [50, 51].map(|since| outages.was_away(&service, NODE, at(since))),
            [true, false]
        );
        assert!(!outages.was_away(&service, EventSource::Peer(0), at(0)));
    }

    #[test]
    fn broken_subscription_is_an_outage_without_duration() {
        let (outages, service) = (NodeOutages::new(), "a::b".parse().unwrap());
        outages.broke(&service, NODE, at(5));
        assert!(
            outages.was_away(&service, NODE, at(5)) && !outages.was_away(&service, NODE, at(6))
        );
        assert_eq!(outages.longest(&service, NODE, at(0)), Duration::ZERO);
        assert_eq!(outages.last_end(&service, NODE), Some(at(5)));
    }

    #[test]
    fn few_outages_are_remembered() {
        let (outages, service) = (NodeOutages::new(), "a::b".parse().unwrap());
        outages.record(&service, NODE, false, at(0), at(0));
        outages.record(&service, NODE, true, at(100), at(100));
        assert_eq!(outages.longest(&service, NODE, at(0)).as_secs(), 100);
        for seconds in 0..NodeOutages::REMEMBERED as u64 {
            outages.broke(&service, NODE, at(200 + seconds));
        }
        assert_eq!(outages.longest(&service, NODE, at(0)), Duration::ZERO);
    }
}
