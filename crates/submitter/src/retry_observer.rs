use std::sync::Arc;

use grid_batch_core::ledger::{GroupObserver, SubmissionOutcome};
use grid_batch_core::queue::NextStep;
use grid_batch_core::{BatchError, BatchResult, ScopeId};

use crate::{DelayedServices, RetryQueue};

/// Receives the outcomes of the batches of a [`RetryQueue`], and passes on those after which the batch is not sent
/// again.
pub(crate) struct RetryObserver<S: ScopeId> {
    pub(crate) queue: RetryQueue<S>,
    pub(crate) own: Option<Arc<dyn GroupObserver<Id = S>>>,
    pub(crate) delayed: DelayedServices,
}

impl<S: ScopeId> GroupObserver for RetryObserver<S> {
    type Id = S;

    fn notify_group(&self, outcomes: &[SubmissionOutcome<S>]) -> BatchResult<()> {
        let steps: Vec<_> = outcomes.iter().map(|it| (it, self.queue.next_step(it))).collect();
        let is_passed_on = |step: &Option<NextStep>| !matches!(step, Some(NextStep::Retry(_)));
        let passed_on = steps.iter().filter(|(_, step)| is_passed_on(step));
        let passed_on: Vec<_> = passed_on.map(|(outcome, _)| (*outcome).clone()).collect();
        let result = match &self.own {
            Some(own) if !passed_on.is_empty() => own.notify_group(&passed_on),
            _ => Ok(()),
        };
        // What the own observer has not recorded is delivered again.
        let locked = match &result {
            Ok(()) => &[][..],
            Err(BatchError::Locked(services)) => services,
            Err(_) => return result,
        };
        for (outcome, step) in steps {
            let service_id = outcome.scope_id.service_id();
            let Some(step) = step.filter(|_| !locked.contains(service_id)) else { continue };
            self.queue.take_step(outcome, step);
            if matches!(step, NextStep::Hold(_)) {
                self.delayed.forget(service_id, &outcome.batch_header);
            }
        }
        self.queue.wake();
        result
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::{
            Mutex,
            atomic::{AtomicUsize, Ordering::Relaxed},
        },
        time::Duration,
    };

    use grid_batch_core::ledger::{Outcome, Submission, SubmissionAnswer};
    use grid_batch_core::queue::DelayOptions;
    use grid_batch_core::{Clock, ManualClock, Moment, ServiceId, ServiceScopeId, Timestamp};
    use grid_batch_support::lock;
    use grid_batch_work::WorkTable;

    use super::*;

    type Id = ServiceScopeId;

    const SECOND: Duration = Duration::from_secs(1);

    /// A retry queue with a clock that stands, and an own observer that records what is passed on.
    struct Test {
        queue: RetryQueue<Id>,
        observer: RetryObserver<Id>,
        passed_on: Arc<PassedOn>,
        clock: Arc<ManualClock>,
    }

    /// Records batches and outcomes. Fails with the error, if there is one.
    #[derive(Default)]
    struct PassedOn {
        outcomes: Mutex<Vec<(String, Outcome)>>,
        error: Mutex<Option<BatchError>>,
    }

    impl GroupObserver for PassedOn {
        type Id = Id;

        fn notify_group(&self, outcomes: &[SubmissionOutcome<Id>]) -> BatchResult<()> {
            let error = lock(&self.error).clone();
            error.map_or(Ok(()), Err)?;
            let of = |it: &SubmissionOutcome<Id>| (it.batch_header.clone(), it.answer.outcome);
            lock(&self.outcomes).extend(outcomes.iter().map(of));
            Ok(())
        }
    }

    impl Test {
        /// The batches of this many services: `a1`, `b1`, `a2`, `b2` and so on.
        fn new(services: usize, batches: usize) -> Self {
            let names = ["a", "b", "c"].into_iter().take(services);
            Self::over((1..=batches).flat_map(move |number| {
                names.clone().map(move |service| submission(service, number))
            }))
        }

        fn over(own: impl Iterator<Item = Submission<Id>> + Send + 'static) -> Self {
            let clock = Arc::new(ManualClock::default());
            let options = DelayOptions { seed: Some(7), ..DelayOptions::default() };
            let queue = RetryQueue::new(own, options).with_clock(Arc::<ManualClock>::clone(&clock));
            let passed_on = Arc::<PassedOn>::default();
            let observer = RetryObserver {
                queue: queue.clone(),
                own: Some(Arc::<PassedOn>::clone(&passed_on)),
                delayed: DelayedServices::new(
                    WorkTable::default(),
                    SECOND,
                    queue.longest_delay(),
                    Arc::<ManualClock>::clone(&clock),
                ),
            };
            Self { queue, observer, passed_on, clock }
        }

        /// The batches that can be sent now.
        fn take_all(&mut self) -> Vec<Submission<Id>> {
            self.queue.by_ref().collect()
        }

        fn take_names(&mut self) -> Vec<String> {
            self.take_all().iter().map(|it| it.batch_header().to_owned()).collect()
        }

        fn end(&self, submission: &Submission<Id>, answer: SubmissionAnswer) -> BatchResult<()> {
            self.observer.notify_group(&[SubmissionOutcome {
                batch_header: submission.batch_header().to_owned(),
                scope_id: submission.scope_id().clone(),
                attempt_id: None,
                deadline: None,
                attempts: 1,
                answer,
            }])
        }

        /// The only batch that can be sent now ends with this answer.
        fn end_next(&mut self, answer: SubmissionAnswer) {
            let sent = self.take_all();
            assert_eq!(sent.len(), 1, "one batch can be sent");
            self.end(&sent[0], answer).unwrap();
        }

        fn passed_on(&self) -> Vec<(String, Outcome)> {
            lock(&self.passed_on.outcomes).clone()
        }
    }

    fn submission(service: &str, number: usize) -> Submission<Id> {
        let scope_id = Id::from_service_id(&service_id(service)).unwrap();
        Submission::new(format!("{service}{number}"), scope_id, b"bytes".to_vec())
    }

    fn service_id(service: &str) -> ServiceId {
        format!("circuit::{service}").parse().unwrap()
    }

    fn answer(outcome: Outcome) -> SubmissionAnswer {
        SubmissionAnswer::without_response(outcome, "no")
    }

    /// A ledger that is busy for ten minutes gets requests at the pace of the policy, and then the batches of each
    /// service in their order.
    #[test]
    fn busy_ledger_gets_few_requests_and_the_order() {
        let mut test = Test::new(3, 5);
        let is_busy = |clock: &ManualClock| clock.now() < Timestamp::default().plus(600 * SECOND);
        let (mut requests, mut accepted) = (0, Vec::new());
        loop {
            let sent = test.take_all();
            for submission in &sent {
                requests += 1;
                let outcome = if is_busy(&test.clock) { Outcome::Busy } else { Outcome::Accepted };
                if outcome == Outcome::Accepted {
                    accepted.push(submission.batch_header().to_owned());
                }
                test.end(submission, answer(outcome)).unwrap();
            }
            match test.queue.next_due() {
                Some(due) => test.clock.advance(due),
                None => break,
            }
        }
        // Delays of 0.25 s double to 30 s, each at least half as long: at most 8 until then, and 40 of at least 15 s.
        let most = 3 * (8 + 40) + 15;
        assert!(requests > 3 * 20 + 15 && requests <= most, "{requests} requests");
        for service in ["a", "b", "c"] {
            let of_service = accepted.iter().filter(|name| name.starts_with(service));
            let expected = (1..=5).map(|number| format!("{service}{number}"));
            assert!(of_service.eq(&expected.collect::<Vec<_>>()), "{accepted:?}");
        }
        let passed_on = accepted.into_iter().map(|name| (name, Outcome::Accepted));
        assert_eq!(test.passed_on(), passed_on.collect::<Vec<_>>());
    }

    #[test]
    fn ledger_is_not_asked_before_its_retry_after() {
        let mut test = Test::new(1, 2);
        let retry_after = Some(90 * SECOND);
        test.end_next(SubmissionAnswer { retry_after, ..answer(Outcome::Busy) });
        assert!(test.queue.next_due().is_some_and(|due| due >= 90 * SECOND && due <= 99 * SECOND));
        test.clock.advance(89 * SECOND);
        assert_eq!(test.take_names(), [""; 0]);
        test.clock.advance(10 * SECOND);
        assert_eq!(test.take_names(), ["a1"]);
    }

    #[test]
    fn service_waits_for_its_first_batch_and_no_other() {
        let mut test = Test::new(2, 2);
        let sent = test.take_all();
        assert_eq!(sent.len(), 2, "one of each service");
        test.end(&sent[0], answer(Outcome::NotSent)).unwrap();
        test.end(&sent[1], answer(Outcome::Accepted)).unwrap();
        assert_eq!(test.take_names(), ["b2"]);
        assert_eq!(test.passed_on(), [("b1".to_owned(), Outcome::Accepted)]);
        test.clock.advance(test.queue.next_due().unwrap());
        assert_eq!(test.take_names(), ["a1"]);
    }

    #[test]
    fn ambiguous_batch_stops_its_service() {
        let mut test = Test::new(1, 3);
        test.end_next(answer(Outcome::Ambiguous));
        assert_eq!((test.take_names(), test.queue.next_due()), (Vec::new(), None));
        let stopped = test.queue.stopped();
        assert_eq!(stopped[0].batch_header, "a1");
        assert_eq!(test.passed_on(), [("a1".to_owned(), Outcome::Ambiguous)]);

        assert!(test.queue.send_again(&service_id("a")));
        assert!(!test.queue.send_again(&service_id("a")), "it has not stopped");
        test.end_next(answer(Outcome::Ambiguous));
        assert!(test.queue.give_up(&service_id("a")));
        assert_eq!(test.take_names(), ["a2"]);
        assert!(!test.queue.give_up(&service_id("b")), "it is not known");
    }

    #[test]
    fn refused_batch_is_held_after_the_limit() {
        let mut test = Test::new(1, 2);
        let limit = DelayOptions::default().refusals_before_hold;
        for _ in 0..limit {
            assert_eq!(test.passed_on(), []);
            test.end_next(answer(Outcome::Refused));
            test.clock.advance(test.queue.next_due().unwrap_or_default());
        }
        assert_eq!(test.passed_on(), [("a1".to_owned(), Outcome::Refused)]);
        assert_eq!((test.queue.stopped().len(), test.take_names()), (1, Vec::new()));
        // It gets as many tries as a new one.
        test.queue.send_again(&service_id("a"));
        test.end_next(answer(Outcome::Refused));
        assert!(test.queue.next_due().is_some());
    }

    #[test]
    fn rejected_batch_lets_the_next_one_go() {
        let mut test = Test::new(1, 2);
        test.end_next(answer(Outcome::Rejected));
        assert_eq!(test.take_names(), ["a2"]);
    }

    #[test]
    fn outcome_that_was_not_recorded_counts_once() {
        let mut test = Test::new(2, 2);
        let sent = test.take_all();
        *lock(&test.passed_on.error) = Some(BatchError::Unavailable("down".to_owned()));
        let accept =
            |test: &Test, number: usize| test.end(&sent[number], answer(Outcome::Accepted));
        assert!(accept(&test, 0).is_err());
        assert_eq!(test.take_names(), [""; 0], "it is delivered again");
        *lock(&test.passed_on.error) = Some(BatchError::Locked(vec![service_id("a")]));
        assert!(accept(&test, 0).is_err());
        assert!(accept(&test, 1).is_err(), "only about the other service");
        assert_eq!(test.take_names(), ["b2"]);
        *lock(&test.passed_on.error) = None;
        accept(&test, 0).unwrap();
        assert_eq!(test.take_names(), ["a2"]);
    }

    #[test]
    fn own_queue_is_read_up_to_a_limit() {
        let read = Arc::<AtomicUsize>::default();
        let last = Arc::clone(&read);
        let mut test = Test::over((1..).map(move |number| {
            last.store(number, Relaxed);
            submission("a", number)
        }));
        for number in 1..=3 {
            assert_eq!(test.take_names(), [format!("a{number}")]);
            assert_eq!(read.load(Relaxed), RetryQueue::<Id>::MOST_BEHIND + number);
            test.end(&submission("a", number), answer(Outcome::Accepted)).unwrap();
        }
    }

    #[test]
    fn each_try_counts_as_newly_taken() {
        let taken = submission("a", 1).with_taken_at(Moment::default());
        let mut test = Test::over([taken].into_iter());
        test.end_next(answer(Outcome::Busy));
        test.clock.advance(3_600 * SECOND);
        let again = test.take_all();
        assert_eq!(again[0].taken_at().unwrap().longest_elapsed(&*test.clock), Duration::ZERO);
    }
}
