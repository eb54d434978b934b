use std::{collections::HashSet, fmt};

use grid_batch_core::{ItemId, ServiceId};
use tokio::sync::watch;

use crate::{ExecutionResult, Record};

/// Transactions that were committed together: a batch on Scabbard, a block on Sawtooth.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CommitEvent {
    pub(crate) service_id: ServiceId,
    pub(crate) transaction_ids: Vec<ItemId>,
}

/// All events since the start of the record.
#[derive(Debug)]
pub(crate) struct Events {
    all: Vec<CommitEvent>,
    /// The number of events that may be sent.
    count: watch::Sender<usize>,
    are_sent: bool,
    websockets: WebSocketCounts,
}

/// The number of open event websockets, and how others ended, except those that the ledger has reset.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WebSocketCounts {
    /// Open websockets.
    pub open: usize,
    /// The client has sent a Close frame.
    pub closed: usize,
    /// The client has disappeared without a Close frame.
    pub broken: usize,
}

impl Events {
    /// Restores the events. A batch that was applied twice is only one event.
    pub(crate) fn from_record(record: &Record) -> Self {
        let mut seen = HashSet::new();
        let applied =
            record.entries().iter().filter(|entry| entry.result == ExecutionResult::Applied);
        let all: Vec<_> = applied
            .filter(|entry| seen.insert((&entry.service_id, entry.batch_id)))
            .map(|entry| CommitEvent {
                service_id: entry.service_id.clone(),
                transaction_ids: entry.transaction_ids.clone(),
            })
            .collect();
        Self {
            count: watch::Sender::new(all.len()),
            all,
            are_sent: true,
            websockets: WebSocketCounts::default(),
        }
    }

    pub(crate) fn publish(&mut self, event: CommitEvent) {
        self.all.push(event);
        if self.are_sent {
            self.count.send_replace(self.all.len());
        }
    }

    /// Sends no more events, until they are resumed.
    pub(crate) fn stop_sending(&mut self) {
        self.are_sent = false;
    }

    pub(crate) fn resume_sending(&mut self) {
        self.are_sent = true;
        self.count.send_replace(self.all.len());
    }

    pub(crate) fn websocket_counts(&mut self) -> &mut WebSocketCounts {
        &mut self.websockets
    }

    pub(crate) fn websockets(&self) -> WebSocketCounts {
        self.websockets
    }

    /// The events that may be sent.
    pub(crate) fn sent(&self) -> &[CommitEvent] {
        &self.all[..*self.count.borrow()]
    }

    pub(crate) fn all(&self) -> &[CommitEvent] {
        &self.all
    }

    /// The number of events, which can be watched.
    pub(crate) fn count(&self) -> watch::Receiver<usize> {
        self.count.subscribe()
    }
}

/// The frames that one client of an event websocket receives.
pub(crate) trait EventFrames: fmt::Debug + Send {
    /// The frames for the event at this position.
    fn frames(&mut self, position: usize, event: &CommitEvent) -> Vec<String>;

    /// The frames that notify the client that the validator behind the interface has ended.
    fn disconnected(&self) -> Vec<String> {
        Vec::new()
    }

    /// The frames that answer a text of the client.
    fn receive(&mut self, text: &str, events: &Events) -> Vec<String>;

    /// Whether a client that disappears can end the events of all clients.
    fn may_end_with_client(&self) -> bool {
        false
    }
}

/// A subscription: the frames to send first, and the source of later frames.
#[derive(Debug)]
pub(crate) struct Subscription {
    pub(crate) backlog: Vec<String>,
    /// The position of the first event that is not in the backlog.
    pub(crate) next: usize,
    pub(crate) feed: Box<dyn EventFrames>,
}
