use std::{collections::HashSet, fmt};

use grid_batch_core::{HeaderId, ServiceId};
use tokio::sync::watch;

use crate::{Record, Verdict};

/// What event sockets tell of: what was committed together. One batch on Scabbard, a block of them
/// on Sawtooth.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) service_id: ServiceId,
    pub(crate) transaction_ids: Vec<HeaderId>,
}

/// All events since the beginning of the record.
#[derive(Debug)]
pub(crate) struct Events {
    all: Vec<Event>,
    count: watch::Sender<usize>,
}

impl Events {
    /// What was applied a second time was no event.
    pub(crate) fn from_record(record: &Record) -> Self {
        let mut seen = HashSet::new();
        let applied = record.entries().iter().filter(|entry| entry.verdict == Verdict::Applied);
        let all: Vec<_> = applied
            .filter(|entry| seen.insert((&entry.service_id, entry.batch_id)))
            .map(|entry| Event {
                service_id: entry.service_id.clone(),
                transaction_ids: entry.transaction_ids.clone(),
            })
            .collect();
        Self { count: watch::Sender::new(all.len()), all }
    }

    pub(crate) fn publish(&mut self, event: Event) {
        self.all.push(event);
        self.count.send_replace(self.all.len());
    }

    pub(crate) fn all(&self) -> &[Event] {
        &self.all
    }

    /// How many there are, and will be.
    pub(crate) fn count(&self) -> watch::Receiver<usize> {
        self.count.subscribe()
    }
}

/// What one client of an event socket is told.
pub(crate) trait Feed: fmt::Debug + Send {
    /// The frames for an event that has this place among all.
    fn frames(&mut self, place: usize, event: &Event) -> Vec<String>;

    /// The frames that answer what the client says.
    fn hear(&mut self, text: &str, events: &Events) -> Vec<String>;
}

/// A client of an event socket: what it is told first, and what then.
#[derive(Debug)]
pub(crate) struct Subscription {
    pub(crate) backlog: Vec<String>,
    /// The place of the first event that is not in the backlog.
    pub(crate) next: usize,
    pub(crate) feed: Box<dyn Feed>,
}
