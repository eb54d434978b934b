//! The frames of Scabbard's event websocket, and its replay.

use grid_batch_core::{ItemId, ServiceId};
use serde::Serialize;

use crate::events::{CommitEvent, EventFrames, Events, EventsOf, Subscription};

/// The number of events that the node reads from its store at a time.
const PAGE: usize = 64;
const ADDRESS_LENGTH: usize = 70;

/// The frames of a service's events.
#[derive(Debug)]
struct ServiceFeed;

impl EventFrames for ServiceFeed {
    fn frames(&mut self, _number: usize, event: &CommitEvent) -> Vec<String> {
        event.transaction_ids.iter().map(|id| frame(&id.to_string())).collect()
    }

    fn receive(&mut self, _text: &str, _events: &Events) -> Vec<String> {
        Vec::new()
    }
}

/// A subscription that continues after this transaction, or starts at the first one. `None` if the
/// service has no such transaction.
pub(super) fn subscribe(
    service_id: &ServiceId,
    last_seen: Option<&str>,
    events: &Events,
) -> Option<Subscription> {
    let of_service = || events.of_service(service_id);
    let ids: Vec<_> = of_service()
        .flat_map(|event| event.transaction_ids.iter().map(ItemId::to_string))
        .collect();
    if last_seen.is_some_and(|last| !ids.iter().any(|id| id == last)) {
        return None;
    }
    Some(Subscription {
        of: EventsOf::Service(service_id.clone()),
        backlog: replay(&ids, last_seen).into_iter().map(frame).collect(),
        next: of_service().count(),
        feed: Box::new(ServiceFeed),
    })
}

/// The replayed transactions, with the bug of real nodes: for each page, the store selects ids that
/// are greater than the last one, instead of later ones. So with more than one page, some are
/// missing and others are repeated.
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

/// The frame of a transaction, with a fictitious change at an address of its own.
fn frame(id: &str) -> String {
    let key = &id[..ADDRESS_LENGTH];
    let frame = Frame { id, state_changes: [StateChange::Set { key, value: [1] }] };
    serde_json::to_string(&frame).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ids in no alphabetical order.
    fn ids(count: u32) -> Vec<String> {
        (0..count).map(|n| format!("{:08x}", n.wrapping_mul(0x9e37_79b1))).collect()
    }

    #[test]
    fn one_page_is_replayed_completely_and_once() {
        let ids = ids(63);
        let replayed = replay(&ids, None);
        assert_eq!(replayed[..63], ids);
    }

    #[test]
    fn more_pages_have_missing_and_repeated_transactions() {
        let ids = ids(150);
        let replayed = replay(&ids, None);
        assert_eq!(replayed[..64], ids[..64]);
        let distinct: std::collections::HashSet<_> = replayed.iter().collect();
        assert!(distinct.len() < 150 && distinct.len() < replayed.len());
    }
}
