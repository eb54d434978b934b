use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use grid_batch_core::MonotonicTime;
use grid_batch_support::lock;

use crate::{BatchWork, CommitTimes, DueTimes, ServiceWork, WorkKey};

/// What is known of the services of an instance and of their batches that are under way. Clones share it.
///
/// It is in memory only. Everything in it is found again in the store.
#[derive(Debug, Clone, Default)]
pub struct WorkTable(Arc<Mutex<Work>>);

/// The content of a [`WorkTable`].
#[derive(Debug, Default)]
pub struct Work {
    /// The services.
    pub services: HashMap<Arc<str>, ServiceWork>,
    /// What is due when.
    pub due: DueTimes,
    /// How long batches take.
    pub times: CommitTimes,
    next_prune: MonotonicTime,
}

/// A record that was entered, or was there, with what else its view may change.
#[derive(Debug)]
pub struct Entered<'a> {
    /// The service, and the batch if the record of a batch was asked for.
    pub key: WorkKey,
    /// The record of the service.
    pub service: &'a mut ServiceWork,
    /// What is due when.
    pub due: &'a mut DueTimes,
    /// How long batches take.
    pub times: &'a mut CommitTimes,
}

impl WorkTable {
    /// Locks the table. No store and no ledger is called while it is locked.
    pub fn lock(&self) -> MutexGuard<'_, Work> {
        lock(&self.0)
    }
}

impl Work {
    /// The greatest number of services in the table.
    pub const CAPACITY: usize = 1_000_000;

    /// The record of the service, which is added if it is new.
    pub fn enter(&mut self, service_id: &str) -> Entered<'_> {
        let known = self.services.get_key_value(service_id).map(|(key, _)| Arc::clone(key));
        let service_id = known.unwrap_or_else(|| service_id.into());
        let service = self.services.entry(Arc::clone(&service_id)).or_default();
        let key = WorkKey { service_id, batch_id: None };
        Entered { key, service, due: &mut self.due, times: &mut self.times }
    }

    /// The record of the service, if it has one.
    pub fn service(&self, service_id: &str) -> Option<&ServiceWork> {
        self.services.get(service_id)
    }

    /// The record of the batch, if it has one.
    pub fn batch(&self, service_id: &str, batch_id: &str) -> Option<&BatchWork> {
        self.services.get(service_id)?.batches.get(batch_id)
    }

    /// The record of the batch, if it has one, to be changed.
    pub fn batch_mut(&mut self, service_id: &str, batch_id: &str) -> Option<&mut BatchWork> {
        self.services.get_mut(service_id)?.batches.get_mut(batch_id)
    }

    /// Removes the record of the batch if no view needs it, and then that of the service in the same way.
    pub fn remove_unneeded(&mut self, service_id: &str, batch_id: Option<&str>) {
        let Some(service) = self.services.get_mut(service_id) else { return };
        if let Some(batch_id) = batch_id
            && service.batches.get(batch_id).is_some_and(|batch| !batch.is_needed())
        {
            service.batches.remove(batch_id);
        }
        if !service.is_needed() {
            self.services.remove(service_id);
        }
    }

    /// Removes what is older than `keep` and of which nothing is to be done, from time to time. Batches of
    /// services for which `is_busy` is true stay, because a request about them waits.
    pub fn prune(&mut self, now: MonotonicTime, keep: Duration, is_busy: impl Fn(&str) -> bool) {
        if now < self.next_prune {
            return;
        }
        self.next_prune = now.plus(keep / 4);
        let is_old = |time: MonotonicTime| now.since(time) >= keep;
        self.services.retain(|service_id, service| {
            let was_asked = service.asked.is_some_and(|(asked, _)| !is_old(asked));
            let is_followed = was_asked || service.poll.is_some() || is_busy(service_id);
            service.batches.retain(|_, batch| {
                batch.under_way.take_if(|batch| !is_followed && batch.newly_accepted.is_none());
                batch.search.take_if(|search| !search.is_needed(now, keep));
                batch.is_needed()
            });
            service.trigger.missed.take_if(|missed| is_old(*missed));
            service.reported_not_before.take_if(|time| is_old(*time));
            service.restored.take_if(|restored| is_old(restored.last_seen));
            service.is_needed()
        });
    }
}

impl Entered<'_> {
    /// The record of a batch of the service, which is added if it is new, its key, and what is due when.
    pub fn batch(&mut self, batch_id: &str) -> (WorkKey, &mut BatchWork, &mut DueTimes) {
        let known = self.service.batches.get_key_value(batch_id).map(|(key, _)| Arc::clone(key));
        let batch_id = known.unwrap_or_else(|| batch_id.into());
        let batch = self.service.batches.entry(Arc::clone(&batch_id)).or_default();
        let service_id = Arc::clone(&self.key.service_id);
        (WorkKey { service_id, batch_id: Some(batch_id) }, batch, self.due)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{PollCause, Search, UnderWay};

    const KEEP: Duration = Duration::from_secs(60);

    fn at(seconds: u64) -> MonotonicTime {
        MonotonicTime::default().plus(Duration::from_secs(1_000 + seconds))
    }

    #[test]
    fn record_goes_when_no_view_needs_it() {
        let mut work = Work::default();
        let mut entered = work.enter("a");
        let (_, batch, _) = entered.batch("1");
        batch.under_way = Some(UnderWay::default());
        batch.search = Some(Box::default());
        work.batch_mut("a", "1").unwrap().under_way = None;
        work.remove_unneeded("a", Some("1"));
        work.batch_mut("a", "1").unwrap().search = None;
        work.remove_unneeded("a", Some("1"));
        assert!(work.services.is_empty());
    }

    #[test]
    fn what_is_old_is_removed() {
        let mut work = Work::default();
        for number in 0..100 {
            let mut entered = work.enter(&format!("service {number}"));
            let (_, batch, _) = entered.batch("1");
            batch.search = Some(Box::new(Search { last_used: at(number), ..Search::default() }));
            entered.batch("2").1.under_way = Some(UnderWay::default());
            entered.service.asked = Some((at(number), PollCause::Schedule));
            entered.service.trigger.missed = Some(at(number));
        }
        work.prune(at(100), KEEP, |_| false);
        assert_eq!(work.services.len(), 59);
        work.prune(at(110), KEEP, |_| false);
        assert_eq!(work.services.len(), 59, "not so soon again");
        work.prune(at(200), KEEP, |service| service == "service 99");
        assert_eq!(work.services.len(), 1, "its request waits");
    }
}
