use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use grid_batch_core::MonotonicTime;
use grid_batch_support::lock;

use crate::{BatchWork, CommitTimes, DueTimes, ServiceWork, UnderWay, WorkKey};

/// What is known about the services of an instance and of their batches that are under way. Clones share it.
///
/// It is kept in memory only. Everything in it can be read again from the store.
#[derive(Debug, Clone, Default)]
pub struct WorkTable(Arc<Mutex<Work>>);

/// The content of a [`WorkTable`].
#[derive(Debug, Default)]
pub struct Work {
    /// The services. The records are large, so the table has only pointers to them.
    pub services: HashMap<Arc<str>, Box<ServiceWork>>,
    /// What is due when.
    pub due: DueTimes,
    /// How long batches take.
    pub times: CommitTimes,
    next_prune: MonotonicTime,
    /// The services whose old records are still to be removed.
    to_prune: Vec<Arc<str>>,
}

/// A record that was added or existed already, with the other parts of the table that a view may change.
#[derive(Debug)]
pub struct Entered<'a> {
    /// The service, and the batch if the record is that of a batch.
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

    /// The shortest time that the ledger took for a batch lately; `None` before the first commit.
    pub fn ledger_time(&self) -> Option<Duration> {
        self.lock().times.shortest_of_ledger()
    }
}

impl Work {
    /// Limit on the number of services in the table.
    pub const CAPACITY: usize = 1_000_000;

    /// How many services one call checks for old records. It is limited because the table is locked meanwhile.
    const PRUNED_AT_ONCE: usize = 1_000;

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
        self.services.get(service_id).map(|service| &**service)
    }

    /// The record of the batch, if it has one.
    pub fn batch(&self, service_id: &str, batch_id: &str) -> Option<&BatchWork> {
        self.services.get(service_id)?.batches.get(batch_id).map(|batch| &**batch)
    }

    /// The record of the batch, if it has one, for changes.
    pub fn batch_mut(&mut self, service_id: &str, batch_id: &str) -> Option<&mut BatchWork> {
        self.services.get_mut(service_id)?.batches.get_mut(batch_id).map(|batch| &mut **batch)
    }

    /// The batches of a service that the ledger did not report when it was last asked, and since when.
    pub fn not_reported(&self, service_id: &str) -> impl Iterator<Item = (&str, MonotonicTime)> {
        let batches = self.service(service_id).into_iter().flat_map(|service| &service.batches);
        batches.filter_map(|(id, batch)| Some((&**id, batch.under_way.as_ref()?.not_reported?)))
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
        } else if service.batches.is_empty() {
            service.batches.shrink_to_fit();
        }
    }

    /// Removes records that are older than `keep` and have nothing due. It does so from time to time, for some services
    /// with each call. Batches of services for which `is_busy` is true stay, because a request about them waits.
    pub fn prune(&mut self, now: MonotonicTime, keep: Duration, is_busy: impl Fn(&str) -> bool) {
        if self.to_prune.is_empty() && now >= self.next_prune {
            self.next_prune = now.plus(keep / 4);
            self.to_prune = self.services.keys().cloned().collect();
        }
        for _ in 0..Self::PRUNED_AT_ONCE {
            let Some(service_id) = self.to_prune.pop() else { return };
            self.prune_service(&service_id, now, keep, is_busy(&service_id));
        }
    }

    fn prune_service(
        &mut self,
        service_id: &str,
        now: MonotonicTime,
        keep: Duration,
        is_busy: bool,
    ) {
        let Some(service) = self.services.get_mut(service_id) else { return };
        let is_old = |time: MonotonicTime| now.since(time) >= keep;
        let was_asked = service.asked.is_some_and(|(asked, _)| !is_old(asked));
        // If many services share the budget, the next poll may come later than `keep`.
        let is_followed = was_asked || service.poll.is_some() || is_busy;
        service.batches.retain(|_, batch| {
            let is_over = |batch: &mut UnderWay| !is_followed && batch.newly_accepted.is_none();
            if let Some(mut over) = batch.under_way.take_if(is_over) {
                self.due.clear(&mut over.since);
            }
            if batch.under_way.is_none() {
                batch.search.take_if(|search| !search.is_needed(now, keep));
            }
            batch.is_needed()
        });
        if !is_followed {
            service.reported_not_before.take_if(|time| is_old(*time));
            service.restored.take_if(|restored| is_old(restored.last_seen));
        }
        self.remove_unneeded(service_id, None);
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
    use crate::{DueKind, Poll, PollCause, Search};

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
            entered.service.reported_not_before = Some(at(number));
        }
        work.prune(at(100), KEEP, |_| false);
        assert_eq!(work.services.len(), 59);
        work.prune(at(110), KEEP, |_| false);
        assert_eq!(work.services.len(), 59, "not so soon again");
        work.prune(at(200), KEEP, |service| service == "service 99");
        assert_eq!(work.services.len(), 1, "its request waits");
    }

    #[test]
    fn some_services_are_looked_at_with_each_call() {
        let mut work = Work::default();
        for number in 0..Work::PRUNED_AT_ONCE * 5 / 2 {
            let mut entered = work.enter(&format!("service {number}"));
            entered.batch("1").1.search = Some(Box::default());
        }
        let left = [1, 2, 3].map(|_| {
            work.prune(at(0), KEEP, |_| false);
            work.services.len()
        });
        assert_eq!(left, [1_500, 500, 0]);
    }

    /// A batch that is under way, has been polled, and has been in the table for a long time.
    fn old_batch(work: &mut Work) {
        let mut entered = work.enter("a");
        entered.service.reported_not_before = Some(at(0));
        let (key, batch, due) = entered.batch("1");
        let mut under_way = UnderWay::default();
        due.set(&mut under_way.since, DueKind::UnderWay, at(0), key);
        batch.under_way = Some(under_way);
        batch.search = Some(Box::default());
    }

    #[test]
    fn what_is_known_stays_until_a_late_next_poll() {
        let mut work = Work::default();
        old_batch(&mut work);
        let poll =
            Poll { since: at(0), failures: 0, failed: None, has_used_budget: false, due: None };
        work.enter("a").service.poll = Some(poll);
        work.prune(at(10_000), KEEP, |_| false);
        assert!(work.batch("a", "1").is_some_and(|batch| batch.search.is_some()));
        assert!(work.service("a").is_some_and(|service| service.reported_not_before.is_some()));
    }

    #[test]
    fn old_batch_leaves_nothing_behind() {
        let mut work = Work::default();
        old_batch(&mut work);
        work.prune(at(10_000), KEEP, |_| false);
        assert!(work.services.is_empty());
        assert_eq!(work.due.count(DueKind::UnderWay), 0);
    }
}
