//! What Scabbard's event socket tells, and how it replays.

use grid_batch_core::{HeaderId, ServiceId};
use serde::Serialize;

use crate::events::{Event, Events, Feed, Subscription};

/// How many events the node reads of its store at a time.
const PAGE: usize = 64;
const ADDRESS_LENGTH: usize = 70;

/// One service's events, as they come.
#[derive(Debug)]
struct ServiceFeed(ServiceId);

impl Feed for ServiceFeed {
    fn frames(&mut self, _place: usize, event: &Event) -> Vec<String> {
        if event.service_id == self.0 {
            event.transaction_ids.iter().map(|id| frame(&id.to_string())).collect()
        } else {
            Vec::new()
        }
    }

    fn hear(&mut self, _text: &str, _events: &Events) -> Vec<String> {
        Vec::new()
    }
}

/// A client that has seen this transaction last, or none; nothing where there is no such one.
pub(super) fn subscribe(
    service_id: &ServiceId,
    last_seen: Option<&str>,
    events: &Events,
) -> Option<Subscription> {
    let ids: Vec<_> = events
        .all()
        .iter()
        .filter(|event| event.service_id == *service_id)
        .flat_map(|event| event.transaction_ids.iter().map(HeaderId::to_string))
        .collect();
    if last_seen.is_some_and(|last| !ids.iter().any(|id| id == last)) {
        return None;
    }
    Some(Subscription {
        backlog: replay(&ids, last_seen).into_iter().map(frame).collect(),
        next: events.all().len(),
        feed: Box::new(ServiceFeed(service_id.clone())),
    })
}

/// The transactions that are replayed, with the genuine mistake: the store looks for ids that come
/// later in the alphabet than the last one, instead of later in time, at every page. So some are
/// missing and others repeated as soon as there is more than one page.
fn replay<'a>(ids: &'a [String], last_seen: Option<&'a str>) -> Vec<&'a str> {
    let mut replayed = Vec::new();
    let mut last = last_seen;
    loop {
        let later = ids.iter().map(|id| &**id).filter(|id| last.is_none_or(|last| *id > last));
        let before = replayed.len();
        replayed.extend(later.take(PAGE));
        if replayed.len() == before {
            return replayed;
        }
        last = replayed.last().copied();
    }
}

#[derive(Serialize)]
struct Frame<'a> {
    id: &'a str,
    state_changes: [StateChange<'a>; 1],
}

#[derive(Serialize)]
enum StateChange<'a> {
    Set { key: &'a str, value: [u8; 1] },
}

/// One transaction. Its change is made up, at an address of its own.
fn frame(id: &str) -> String {
    let key = &id[..ADDRESS_LENGTH];
    let frame = Frame { id, state_changes: [StateChange::Set { key, value: [1] }] };
    serde_json::to_string(&frame).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ids that are in no order.
    fn ids(count: u32) -> Vec<String> {
        (0..count).map(|n| format!("{:08x}", n.wrapping_mul(0x9e37_79b1))).collect()
    }

    #[test]
    fn one_page_is_replayed_whole_and_once() {
        let ids = ids(63);
        let replayed = replay(&ids, None);
        assert_eq!(replayed[..63], ids);
    }

    #[test]
    fn of_more_than_a_page_some_are_missing_and_some_repeated() {
        let ids = ids(150);
        let replayed = replay(&ids, None);
        assert_eq!(replayed[..64], ids[..64]);
        let distinct: std::collections::HashSet<_> = replayed.iter().collect();
        assert!(distinct.len() < 150 && distinct.len() < replayed.len());
    }
}
