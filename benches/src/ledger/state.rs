//! The batches of the ledger: when each arrived, and when it is or was committed.

use std::{
    collections::{HashMap, VecDeque},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use grid_batch_protocol::{Batch, BatchList, Message};

/// A batch that has arrived.
#[derive(Debug)]
struct Entry {
    service: Option<Box<str>>,
    transactions: Vec<Box<str>>,
    posted_at: SystemTime,
    committed_at: Option<SystemTime>,
}

/// The batches that are committed at the same time, with their service if the ledger knows it.
pub(super) type CommittedBatches = Vec<(Option<Box<str>>, Vec<Box<str>>)>;

#[derive(Debug, Default)]
pub(super) struct State {
    entries: HashMap<Box<str>, Entry>,
    arrivals: Vec<Box<str>>,
    due: VecDeque<(Instant, Box<str>)>,
    /// The committed transactions of each service, for replays.
    histories: HashMap<Box<str>, Vec<Box<str>>>,
    pub(super) committed: usize,
}

/// The status of a batch.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Status<'a> {
    Unknown,
    Pending,
    Committed(&'a [Box<str>]),
}

impl State {
    /// Accepts the batches of a list. One that has arrived before is ignored.
    pub(super) fn accept(&mut self, service: Option<&str>, body: &[u8], delay: Duration) -> bool {
        let Ok(list) = BatchList::decode(body) else { return false };
        list.batches.into_iter().for_each(|batch| self.accept_batch(service, batch, delay));
        true
    }

    fn accept_batch(&mut self, service: Option<&str>, batch: Batch, delay: Duration) {
        let id = batch.header_signature.into_boxed_str();
        if self.entries.contains_key(&id) {
            self.arrivals.push(id);
            return;
        }
        let transactions = batch.transactions.into_iter();
        let entry = Entry {
            service: service.map(Into::into),
            transactions: transactions.map(|it| it.header_signature.into_boxed_str()).collect(),
            posted_at: SystemTime::now(),
            committed_at: None,
        };
        self.entries.insert(id.clone(), entry);
        self.arrivals.push(id.clone());
        self.due.push_back((Instant::now() + delay, id));
    }

    pub(super) fn status(&self, id: &str) -> Status<'_> {
        match self.entries.get(id) {
            None => Status::Unknown,
            Some(Entry { committed_at: None, .. }) => Status::Pending,
            Some(entry) => Status::Committed(&entry.transactions),
        }
    }

    /// When the next batch is to be committed.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.due.front().map(|(due, _)| *due)
    }

    /// Commits all batches that are due.
    pub(super) fn commit_due(&mut self) -> CommittedBatches {
        let (now, time) = (Instant::now(), SystemTime::now());
        let mut committed = Vec::new();
        while let Some((_, id)) = self.due.pop_front_if(|(due, _)| *due <= now) {
            let Some(entry) = self.entries.get_mut(&id) else { continue };
            entry.committed_at = Some(time);
            self.committed += 1;
            if let Some(service) = &entry.service {
                let history = self.histories.entry(service.clone()).or_default();
                history.extend_from_slice(&entry.transactions);
            }
            committed.push((entry.service.clone(), entry.transactions.clone()));
        }
        committed
    }

    /// The committed transactions of a service after this one, or all.
    pub(super) fn history(&self, service: &str, after: Option<&str>) -> &[Box<str>] {
        let all = self.histories.get(service).map_or(&[][..], Vec::as_slice);
        let position = after.and_then(|after| all.iter().position(|id| **id == *after));
        &all[position.map_or(0, |position| position + 1)..]
    }

    /// A line for each batch, in the order of arrival: its id, and the microseconds since 1970 at which
    /// it arrived and was committed.
    pub(super) fn report(&self) -> String {
        let mut lines = String::new();
        for id in &self.arrivals {
            let Some(entry) = self.entries.get(id) else { continue };
            let committed = entry.committed_at.map_or(0, micros);
            lines.push_str(&format!("{id} {} {committed}\n", micros(entry.posted_at)));
        }
        lines
    }
}

fn micros(time: SystemTime) -> u128 {
    time.duration_since(UNIX_EPOCH).unwrap_or_default().as_micros()
}
