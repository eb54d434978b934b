//! Commits batches when they are due, and sends events to the subscribers.

use std::{collections::HashMap, rc::Rc, time::Duration};

use tokio::{
    net::tcp::OwnedWriteHalf,
    time::{interval, sleep_until},
};

use super::{Ledger, LedgerKind, frames, responses, state::CommittedBatches};

/// The server takes a websocket that receives nothing for a broken one.
const PING_INTERVAL: Duration = Duration::from_secs(20);

/// A websocket. A frame for which its buffer has no space is lost and logged.
#[derive(Debug, Clone)]
pub(super) struct Subscriber(Rc<OwnedWriteHalf>);

impl Subscriber {
    pub(super) fn new(writer: OwnedWriteHalf) -> Self {
        Self(Rc::new(writer))
    }

    pub(super) fn send(&self, frame: &[u8]) {
        match self.0.try_write(frame) {
            Ok(length) if length == frame.len() => {}
            Ok(_) => eprintln!("the ledger has sent a part of an event"),
            Err(error) => eprintln!("the ledger has lost an event: {error}"),
        }
    }
}

/// The open websockets by service.
#[derive(Debug, Default)]
pub(super) struct Subscribers {
    by_service: HashMap<Box<str>, Vec<(usize, Subscriber)>>,
    last_number: usize,
}

impl Subscribers {
    pub(super) fn add(&mut self, service: &str, subscriber: Subscriber) -> usize {
        self.last_number += 1;
        let number = self.last_number;
        self.by_service.entry(service.into()).or_default().push((number, subscriber));
        number
    }

    pub(super) fn remove(&mut self, service: &str, number: usize) {
        if let Some(subscribers) = self.by_service.get_mut(service) {
            subscribers.retain(|(other, _)| *other != number);
        }
    }

    fn of(&self, service: &str) -> impl Iterator<Item = &Subscriber> {
        self.by_service.get(service).into_iter().flatten().map(|(_, subscriber)| subscriber)
    }
}

pub(super) async fn commit(ledger: Rc<Ledger>) {
    loop {
        let due = ledger.state.borrow().next_due();
        match due {
            None => ledger.arrived.notified().await,
            Some(due) => {
                if due > std::time::Instant::now() {
                    sleep_until(due.into()).await;
                }
                let committed = ledger.state.borrow_mut().commit_due();
                ledger.publish(committed);
                // Requests are served between commits.
                tokio::task::yield_now().await;
            }
        }
    }
}

pub(super) async fn send_pings(ledger: Rc<Ledger>) {
    let mut pings = interval(PING_INTERVAL);
    let ping = frames::ping();
    loop {
        pings.tick().await;
        for (_, subscriber) in ledger.subscribers.borrow().by_service.values().flatten() {
            subscriber.send(&ping);
        }
    }
}

impl Ledger {
    fn publish(&self, committed: CommittedBatches) {
        let subscribers = self.subscribers.borrow();
        if self.kind == LedgerKind::Sawtooth {
            self.blocks.set(self.blocks.get() + 1);
            let frame = frames::text(&responses::sawtooth_event(self.blocks.get()));
            subscribers.of("").for_each(|subscriber| subscriber.send(&frame));
            return;
        }
        for (service, transactions) in committed {
            for subscriber in subscribers.of(service.as_deref().unwrap_or_default()) {
                for transaction in &transactions {
                    subscriber.send(&frames::text(&responses::scabbard_event(transaction)));
                }
            }
        }
    }
}
