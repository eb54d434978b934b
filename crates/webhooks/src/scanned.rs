use std::{collections::HashMap, sync::Mutex, time::Duration};

use grid_batch_core::events::EventCursor;
use grid_batch_core::webhooks::{DueWebhook, WebhookId};
use grid_batch_support::lock;
use tokio::time::Instant;

/// After this long, a position that was reached without an event to deliver is stored, so that a starting instance
/// continues from there.
const STORE_AFTER: Duration = Duration::from_secs(60);

/// For each webhook, how far the feed was read without an event to deliver. It is not stored each time.
#[derive(Default)]
pub(crate) struct Scanned(Mutex<HashMap<WebhookId, Entry>>);

struct Entry {
    /// The position that is stored.
    stored: EventCursor,
    /// How far the feed was read from there.
    read: EventCursor,
    since: Instant,
}

impl Scanned {
    /// Where reading begins, and whether that position should be stored. A position that another instance has stored
    /// takes precedence.
    pub(crate) fn begin(&self, webhook: &DueWebhook) -> (EventCursor, bool) {
        let entries = lock(&self.0);
        match entries.get(&webhook.id).filter(|entry| entry.stored == webhook.cursor) {
            Some(entry) => (entry.read.clone(), entry.since.elapsed() >= STORE_AFTER),
            None => (webhook.cursor.clone(), false),
        }
    }

    /// Records how far the feed was read.
    pub(crate) fn keep(&self, id: WebhookId, stored: &EventCursor, read: EventCursor) {
        let mut entries = lock(&self.0);
        match entries.get_mut(&id).filter(|entry| entry.stored == *stored) {
            Some(entry) => entry.read = read,
            None => {
                let entry = Entry { stored: stored.clone(), read, since: Instant::now() };
                entries.insert(id, entry);
            }
        }
        // This also drops the entries of removed webhooks. A missing entry only costs a read.
        if entries.len() > 1_000 {
            entries.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use grid_batch_core::events::EventFilter;
    use tokio::time::advance;

    use super::*;

    fn cursor(text: &str) -> EventCursor {
        text.parse().unwrap()
    }

    fn webhook(stored: &str) -> DueWebhook {
        DueWebhook {
            id: WebhookId(1),
            url: String::new(),
            secrets: Vec::new(),
            filter: EventFilter::default(),
            cursor: cursor(stored),
            attempts: 0,
            lease: 0,
            has_failed_again: false,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn reading_goes_on_and_is_stored_after_a_while() {
        let scanned = Scanned::default();
        assert_eq!(scanned.begin(&webhook("a")), (cursor("a"), false));
        scanned.keep(WebhookId(1), &cursor("a"), cursor("b"));
        assert_eq!(scanned.begin(&webhook("a")), (cursor("b"), false));
        advance(STORE_AFTER / 2).await;
        scanned.keep(WebhookId(1), &cursor("a"), cursor("c"));
        advance(STORE_AFTER / 2).await;
        assert_eq!(scanned.begin(&webhook("a")), (cursor("c"), true));
        assert_eq!(scanned.begin(&webhook("d")), (cursor("d"), false), "another instance stored");
        scanned.keep(WebhookId(1), &cursor("d"), cursor("e"));
        assert_eq!(scanned.begin(&webhook("d")), (cursor("e"), false));
    }
}
