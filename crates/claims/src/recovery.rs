use std::{collections::HashSet, sync::Arc, time::Duration};

use grid_batch_core::claims::{ClaimKeeper, SubmittedBatch};
use grid_batch_core::events::{Recorded, RecordedSubscriber};
use grid_batch_core::ledger::AttemptId;
use grid_batch_core::{BatchResult, Clock, MonotonicTime};
use grid_batch_support::{Job, Jobs};
use grid_batch_work::{Due, DueKind, Work, WorkKey, WorkTable};
use log::info;

/// A job that finds orphaned batches: the store records them as being with a submitter, but no submitter has them.
///
/// A batch is orphaned when the store marked a round and its answer was lost. Such batches are put in doubt, so that
/// evidence decides about them. Their age is the time for which this job has seen them in the same attempt. If it were
/// computed from stored times, setting a clock forward would turn a submission under way into an orphan.
#[derive(Debug)]
pub struct OrphanRecovery;

impl OrphanRecovery {
    /// How often orphans are searched, and how much longer than the longest submission a batch must have been with its
    /// submitter.
    const INTERVAL: Duration = Duration::from_secs(30);

    /// Starts the job. No submission may last longer than `longest_submission`.
    pub fn start(
        jobs: &Jobs,
        table: WorkTable,
        claims: impl ClaimKeeper + 'static,
        longest_submission: Duration,
        clock: Arc<dyn Clock>,
        subscriber: impl RecordedSubscriber + 'static,
    ) -> Job {
        let minimum_age = longest_submission.saturating_add(Self::INTERVAL);
        let mut submissions = OrphanSearch { table, minimum_age };
        jobs.every("recovery", Self::INTERVAL, move || {
            recover(&claims, &mut submissions, &*clock, &subscriber)
        })
    }
}

fn recover(
    claims: &impl ClaimKeeper,
    submissions: &mut OrphanSearch,
    clock: &dyn Clock,
    subscriber: &impl RecordedSubscriber,
) -> BatchResult<()> {
    let present = claims.with_submitter()?;
    // The time that the store needed does not count, because a submission may have begun just before it answered.
    let orphans = submissions.find_orphans(present, clock.monotonic());
    if !orphans.is_empty() {
        let recovered = claims.recover(&orphans)?;
        info!(batches = recovered.len(); "orphaned batches are in doubt now");
        subscriber.recorded(Recorded::Recovered(&recovered));
    }
    Ok(())
}

/// The search for orphans, a view of the work table.
struct OrphanSearch {
    table: WorkTable,
    minimum_age: Duration,
}

impl OrphanSearch {
    /// The present submissions that were first seen, in the same attempt, at least `minimum_age` ago.
    fn find_orphans(
        &mut self,
        present: Vec<SubmittedBatch>,
        now: MonotonicTime,
    ) -> Vec<SubmittedBatch> {
        let mut work = self.table.lock();
        forget_others(&mut work, &present);
        let is_orphan = |submission: &SubmittedBatch| {
            let mut entered = work.enter(submission.service_id.as_str());
            let (key, batch, due) = entered.batch(&submission.batch_id.to_string());
            let (_, seen) =
                batch.sending.with_submitter.get_or_insert((submission.attempt_id, None));
            if seen.is_none() {
                due.set(seen, DueKind::Orphan, now.plus(self.minimum_age), key);
            }
            seen.as_ref().is_some_and(|seen| seen.at() <= now)
        };
        present.into_iter().filter(is_orphan).collect()
    }
}

/// Forgets the attempts that are not with a submitter any more.
fn forget_others(work: &mut Work, present: &[SubmittedBatch]) {
    let attempt = |it: &SubmittedBatch| (it.batch_id.to_string(), it.attempt_id);
    let present: HashSet<(String, AttemptId)> = present.iter().map(attempt).collect();
    let known: Vec<WorkKey> = work.due.of(DueKind::Orphan).map(|(_, key)| key.clone()).collect();
    for WorkKey { service_id, batch_id } in known {
        let Some(batch_id) = batch_id else { continue };
        let Some(batch) = work.services.get_mut(&service_id) else { continue };
        let Some(batch) = batch.batches.get_mut(&batch_id) else { continue };
        let is_other = |(attempt_id, _): &mut (AttemptId, Option<Due>)| {
            !present.contains(&(batch_id.to_string(), *attempt_id))
        };
        if let Some((_, mut seen)) = batch.sending.with_submitter.take_if(is_other) {
            work.due.clear(&mut seen);
            work.remove_unneeded(&service_id, Some(&batch_id));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use grid_batch_core::ledger::AttemptId;
    use grid_batch_core::mocks::MockClaimKeeper;
    use grid_batch_core::{ItemId, ManualClock};

    use super::*;

    fn submitted(number: u8, attempt: u32) -> SubmittedBatch {
        SubmittedBatch {
            service_id: "circuit::service".parse().unwrap(),
            batch_id: ItemId::from_bytes([number; 64]),
            attempt_id: AttemptId { attempt, epoch: 1 },
        }
    }

    fn at(seconds: u64) -> MonotonicTime {
        MonotonicTime::default().plus(Duration::from_secs(seconds))
    }

    /// Recovers orphans, and returns those with which the subscriber is called.
    fn recover(
        claims: &MockClaimKeeper,
        submissions: &mut OrphanSearch,
        clock: &ManualClock,
    ) -> Vec<SubmittedBatch> {
        let (sender, heard) = channel();
        let recovered = super::recover(claims, submissions, clock, &move |entry: Recorded<'_>| {
            let Recorded::Recovered(orphans) = entry else { panic!("{entry:?}") };
            sender.send(orphans.to_vec()).unwrap();
        });
        recovered.unwrap();
        heard.iter().flatten().collect()
    }

    fn submissions(minimum_age: u64) -> OrphanSearch {
        let minimum_age = Duration::from_secs(minimum_age);
        OrphanSearch { table: WorkTable::default(), minimum_age }
    }

    #[test]
    fn submission_that_was_seen_for_long_is_an_orphan() {
        let mut submissions = submissions(60);
        let mut find = |present: &[u8], now| {
            let present = present.iter().map(|number| submitted(*number, 1)).collect();
            let mut orphans = submissions.find_orphans(present, at(now));
            orphans.sort_by_key(|orphan| orphan.batch_id);
            orphans
        };
        assert_eq!(find(&[1], 1_000_000), []);
        assert_eq!(find(&[1, 2], 1_000_059), []);
        assert_eq!(find(&[1, 2], 1_000_060), [submitted(1, 1)]);
        assert_eq!(find(&[1, 2], 1_000_119), [submitted(1, 1), submitted(2, 1)]);
    }

    #[test]
    fn another_attempt_is_seen_anew() {
        let mut submissions = submissions(60);
        assert_eq!(submissions.find_orphans(vec![submitted(1, 1)], at(0)), []);
        assert_eq!(submissions.find_orphans(vec![submitted(1, 2)], at(90)), []);
        assert_eq!(submissions.find_orphans(vec![submitted(1, 1)], at(140)), [], "it was gone");
    }

    #[test]
    fn orphans_are_recovered_and_published() {
        let mut claims = MockClaimKeeper::new();
        let orphans = || vec![submitted(1, 3), submitted(2, 1)];
        claims.expect_with_submitter().times(2).returning(move || Ok(orphans()));
        // The other one is left for a later call.
        let first = |_: &[SubmittedBatch]| Ok(vec![submitted(1, 3)]);
        claims.expect_recover().once().withf(|of| of.len() == 2).returning(first);
        let (mut submissions, clock) = (submissions(7), ManualClock::default());
        assert_eq!(recover(&claims, &mut submissions, &clock), []);
        clock.advance(Duration::from_secs(7));
        assert_eq!(recover(&claims, &mut submissions, &clock), [submitted(1, 3)]);
    }

    #[test]
    fn hundred_orphans_of_a_service_are_recovered_at_once() {
        let mut claims = MockClaimKeeper::new();
        let orphans: Vec<SubmittedBatch> = (0..100).map(|number| submitted(number, 1)).collect();
        let present = orphans.clone();
        claims.expect_with_submitter().times(2).returning(move || Ok(present.clone()));
        let all = |of: &[SubmittedBatch]| Ok(of.to_vec());
        claims.expect_recover().once().withf(|of| of.len() == 100).returning(all);
        let (mut submissions, clock) = (submissions(7), ManualClock::default());
        assert_eq!(recover(&claims, &mut submissions, &clock), []);
        clock.advance(Duration::from_secs(7));
        assert_eq!(recover(&claims, &mut submissions, &clock).len(), 100);
    }

    #[test]
    fn time_that_the_store_needs_does_not_count() {
        let (mut submissions, clock) = (submissions(7), Arc::new(ManualClock::default()));
        let (mut claims, advanced) = (MockClaimKeeper::new(), Arc::clone(&clock));
        claims.expect_with_submitter().once().returning(move || {
            advanced.advance(Duration::from_secs(60));
            Ok(vec![submitted(1, 1)])
        });
        claims.expect_with_submitter().returning(|| Ok(vec![submitted(1, 1)]));
        assert_eq!(recover(&claims, &mut submissions, &clock), []);
        clock.advance(Duration::from_secs(6));
        assert_eq!(recover(&claims, &mut submissions, &clock), []);
    }

    #[test]
    fn batch_sent_later_than_others_of_its_service_is_no_orphan() {
        let mut submissions = submissions(60);
        let batches = |count: u8| (0..count).map(|number| submitted(number, 1)).collect();
        assert_eq!(submissions.find_orphans(batches(100), at(0)), []);
        assert_eq!(submissions.find_orphans(batches(101), at(60)).len(), 100);
        assert_eq!(submissions.find_orphans(batches(101), at(119)).len(), 100);
        assert_eq!(submissions.find_orphans(batches(101), at(120)).len(), 101);
    }
}
