use std::{
    collections::{HashMap, HashSet},
    fmt,
};

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
    /// Each has its own count, so that an event wakes only the websockets that it concerns.
    of_services: HashMap<ServiceId, ServiceEvents>,
    are_sent: bool,
    websockets: WebSocketCounts,
}

#[derive(Debug, Default)]
struct ServiceEvents {
    /// The positions in all events.
    positions: Vec<usize>,
    /// The number of events that may be sent.
    count: watch::Sender<usize>,
}

/// The events that a websocket is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum EventsOf {
    Ledger,
    Service(ServiceId),
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
        let mut events = Self {
            all: Vec::new(),
            count: watch::Sender::new(0),
            of_services: HashMap::new(),
            are_sent: true,
            websockets: WebSocketCounts::default(),
        };
        all.into_iter().for_each(|event| events.publish(event));
        events
    }

    pub(crate) fn publish(&mut self, event: CommitEvent) {
        let service = self.of_services.entry(event.service_id.clone()).or_default();
        service.positions.push(self.all.len());
        self.all.push(event);
        if self.are_sent {
            self.count.send_replace(self.all.len());
            service.count.send_replace(service.positions.len());
        }
    }

    /// Sends no more events, until they are resumed.
    pub(crate) fn stop_sending(&mut self) {
        self.are_sent = false;
    }

    pub(crate) fn resume_sending(&mut self) {
        self.are_sent = true;
        self.count.send_replace(self.all.len());
        for service in self.of_services.values() {
            service.count.send_replace(service.positions.len());
        }
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

    /// The events of a service, also those that may not be sent.
    pub(crate) fn of_service(&self, service: &ServiceId) -> impl Iterator<Item = &CommitEvent> {
        let positions = self.of_services.get(service).into_iter().flat_map(|it| &it.positions);
        positions.map(|position| &self.all[*position])
    }

    /// The event with this number of those that a websocket is about.
    pub(crate) fn get(&self, of: &EventsOf, number: usize) -> Option<&CommitEvent> {
        match of {
            EventsOf::Ledger => self.all.get(number),
            EventsOf::Service(service) => {
                self.all.get(*self.of_services.get(service)?.positions.get(number)?)
            }
        }
    }

    /// The number of events that may be sent, which can be watched.
    pub(crate) fn count(&mut self, of: &EventsOf) -> watch::Receiver<usize> {
        match of {
            EventsOf::Ledger => self.count.subscribe(),
            EventsOf::Service(service) => {
                self.of_services.entry(service.clone()).or_default().count.subscribe()
            }
        }
    }
}

/// The frames that one client of an event websocket receives.
pub(crate) trait EventFrames: fmt::Debug + Send {
    /// The frames for the event with this number of those that the websocket is about.
    fn frames(&mut self, number: usize, event: &CommitEvent) -> Vec<String>;

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
    pub(crate) of: EventsOf,
    pub(crate) backlog: Vec<String>,
    /// The number of the first event that is not in the backlog.
    pub(crate) next: usize,
    pub(crate) feed: Box<dyn EventFrames>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(service: &str) -> CommitEvent {
        let transaction_ids = vec![ItemId::from_bytes([7; 64])];
        CommitEvent { service_id: service.parse().unwrap(), transaction_ids }
    }

    #[test]
    fn event_wakes_only_what_it_concerns() {
        let mut events = Events::from_record(&Record::in_memory());
        let of = |service: &str| EventsOf::Service(service.parse().unwrap());
        let (ledger, one) = (events.count(&EventsOf::Ledger), events.count(&of("a::b")));
        let other = events.count(&of("c::d"));
        events.publish(event("a::b"));
        let woken = |count: &watch::Receiver<usize>| count.has_changed().unwrap();
        assert_eq!([woken(&ledger), woken(&one), woken(&other)], [true, true, false]);
        assert_eq!(events.get(&of("a::b"), 0), Some(&event("a::b")));
        assert_eq!(events.get(&of("c::d"), 0), None);
    }

    #[test]
    fn events_that_were_kept_back_are_sent_later() {
        let mut events = Events::from_record(&Record::in_memory());
        let count = events.count(&EventsOf::Service("a::b".parse().unwrap()));
        events.stop_sending();
        events.publish(event("a::b"));
        assert_eq!(*count.borrow(), 0);
        events.resume_sending();
        assert_eq!(*count.borrow(), 1);
    }
}
