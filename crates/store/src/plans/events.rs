use grid_batch_core::events::{EventFilter, EventKind, EventPosition, EventStore};
use grid_batch_core::{ItemId, ServiceId};

use crate::Store;

/// Reads the feed from different positions, and the history of a batch.
pub(super) fn read_events(store: &Store, service: &ServiceId, batch: &ItemId) {
    let filter = EventFilter::default();
    let ends = EventFilter { kinds: [EventKind::Ended].into(), ..EventFilter::default() };
    store.events(&EventPosition::Oldest, &ends, 9).unwrap().unwrap();
    let latest = store.events(&EventPosition::Latest, &filter, 9).unwrap().unwrap().next;
    // A position that has seen a few groups, except those of transactions that were running.
    let early = "e1.0.5-3-9-4-7".parse().unwrap();
    for position in
        [EventPosition::Oldest, EventPosition::After(latest), EventPosition::After(early)]
    {
        let page = store.events(&position, &filter, 9).unwrap().unwrap();
        assert!(page.events.len() <= 9);
    }
    assert!(store.history(service, batch).unwrap().unwrap().len() > 3);
}
