use std::{
    collections::{HashMap, VecDeque},
    time::{Duration, Instant},
};

use grid_batch_client::ClientError;
use serde_json::Value;

use crate::commands::remote::entries;

/// How many batches were recently submitted and committed per second.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Rates {
    pub(super) submitted: f64,
    pub(super) committed: f64,
    /// Commits of each service that had any.
    pub(super) of_services: HashMap<String, f64>,
    /// Whether events come faster than they are read, so that the rates are of a part of the time.
    pub(super) is_sample: bool,
}

/// Counts the events of all instances since the last time.
#[derive(Debug, Default)]
pub(super) struct EventFeed {
    /// The position to continue from, and the time at which it was reached.
    position: Option<(String, Instant)>,
    counts: VecDeque<Counts>,
}

#[derive(Debug)]
struct Counts {
    from: Instant,
    to: Instant,
    submitted: u64,
    committed: HashMap<String, u64>,
    is_part: bool,
}

impl EventFeed {
    /// Long enough that a single batch does not determine the rate, and short enough that rates change quickly.
    const WINDOW: Duration = Duration::from_secs(10);
    /// A faster feed is not read completely: the view must not load the server.
    const MOST_PAGES: usize = 10;

    /// The rates until now, or `None` the first time. `read` reads the events after a position.
    pub(super) fn rates(
        &mut self,
        now: Instant,
        read: impl Fn(&str) -> Result<Value, ClientError>,
    ) -> Result<Option<Rates>, ClientError> {
        let Some((position, from)) = self.position.take() else {
            self.counts.clear();
            self.position = next(&read("latest")?).map(|position| (position, now));
            return Ok(None);
        };
        let mut counts =
            Counts { from, to: now, submitted: 0, committed: HashMap::new(), is_part: false };
        let mut position = position;
        for _ in 0..Self::MOST_PAGES {
            let page = read(&position)?;
            counts.add(&page);
            let Some(next) = next(&page) else { return Ok(None) };
            position = next;
            counts.is_part = page["more"].as_bool() == Some(true);
            if !counts.is_part {
                break;
            }
        }
        if counts.is_part {
            let latest = read("latest")?;
            position = next(&latest).unwrap_or(position);
        }
        self.counts.push_back(counts);
        self.position = Some((position, now));
        self.counts
            .retain(|counts| now.duration_since(counts.from) <= Self::WINDOW || counts.to == now);
        Ok(Some(self.summed(now)))
    }

    fn summed(&self, now: Instant) -> Rates {
        let began = self.counts.front().map_or(now, |counts| counts.from);
        let seconds = now.duration_since(began).as_secs_f64().max(0.001);
        let rate = |count: u64| count as f64 / seconds;
        let mut rates = Rates {
            is_sample: self.counts.iter().any(|counts| counts.is_part),
            ..Rates::default()
        };
        for counts in &self.counts {
            rates.submitted += rate(counts.submitted);
            for (service, count) in &counts.committed {
                rates.committed += rate(*count);
                *rates.of_services.entry(service.clone()).or_default() += rate(*count);
            }
        }
        rates
    }
}

impl Counts {
    fn add(&mut self, page: &Value) {
        for event in entries(page, "data") {
            match (event["kind"].as_str(), event["state"].as_str()) {
                (Some("submitted"), _) => self.submitted += 1,
                (_, Some("committed")) => {
                    let service = event["service_id"].as_str().unwrap_or_default();
                    *self.committed.entry(service.to_owned()).or_default() += 1;
                }
                _ => {}
            }
        }
    }
}

fn next(page: &Value) -> Option<String> {
    page["next"].as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn event(kind: &str, state: &str, service: &str) -> Value {
        json!({"kind": kind, "state": state, "service_id": service})
    }

    fn page(data: &[Value], more: bool) -> Value {
        json!({"data": data, "next": "b", "more": more})
    }

    #[test]
    fn rates_are_counts_of_events_in_a_second() {
        let mut feed = EventFeed::default();
        let start = Instant::now();
        let empty = |after: &str| {
            assert_eq!(after, "latest");
            Ok(page(&[], false))
        };
        assert_eq!(feed.rates(start, empty).unwrap(), None);
        let events = [
            event("submitted", "submitting", "x"),
            event("status", "pending", "x"),
            event("status", "committed", "x"),
            event("status", "committed", "y"),
        ];
        let read = |after: &str| {
            assert_eq!(after, "b");
            Ok(page(&events, false))
        };
        let rates = feed.rates(start + Duration::from_secs(2), read).unwrap().unwrap();
        assert_eq!((rates.submitted, rates.committed, rates.is_sample), (0.5, 1.0, false));
        assert_eq!(rates.of_services.get("y"), Some(&0.5));
        let later = start + Duration::from_secs(14);
        let rates = feed.rates(later, |_| Ok(page(&[], false))).unwrap().unwrap();
        assert_eq!((rates.submitted, rates.of_services.len()), (0.0, 0));
    }

    #[test]
    fn feed_that_is_too_fast_is_skipped() {
        let mut feed = EventFeed::default();
        let start = Instant::now();
        feed.rates(start, |_| Ok(page(&[], false))).unwrap();
        let reads = std::cell::RefCell::new(Vec::new());
        let read = |after: &str| {
            reads.borrow_mut().push(after.to_owned());
            Ok(page(&[event("submitted", "submitting", "x")], true))
        };
        let rates = feed.rates(start + Duration::from_secs(1), read).unwrap().unwrap();
        assert!(rates.is_sample && rates.submitted == 10.0, "{rates:?}");
        assert_eq!(reads.borrow().last().map(String::as_str), Some("latest"));
    }
}
