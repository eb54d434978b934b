use std::{sync::Arc, time::Duration};

use grid_batch_core::{Clock, Moment, Outcome, ScopeId, SubmissionAnswer, SubmissionOutcome};
use grid_batch_support::Delays;
use tokio::time::sleep;

use crate::{
    SubmitterOptions,
    command::{SubmissionCommand, error_answer},
    shutdown_deadline::ShutdownDeadline,
};

/// Decides whether and when a batch is sent again.
pub(crate) struct SubmissionController<S: ScopeId> {
    command: SubmissionCommand<S>,
    options: Arc<SubmitterOptions>,
    shutdown: ShutdownDeadline,
    delays: Delays,
    clock: Arc<dyn Clock>,
    /// When the submission was taken: its time limit starts then.
    taken_at: Moment,
    busy_answers: u16,
    not_sent_answers: u16,
}

impl<S: ScopeId> SubmissionController<S> {
    /// Controls `command`, whose submission was taken at `taken_at`.
    pub(crate) fn new(
        command: SubmissionCommand<S>,
        options: Arc<SubmitterOptions>,
        shutdown: ShutdownDeadline,
        rng: fastrand::Rng,
        (clock, taken_at): (Arc<dyn Clock>, Moment),
    ) -> Self {
        let delays = options.retry_backoff.delays(rng);
        Self {
            command,
            options,
            shutdown,
            delays,
            clock,
            taken_at,
            busy_answers: 0,
            not_sent_answers: 0,
        }
    }

    /// Sends the batch until an answer is final or a limit is reached.
    pub(crate) async fn run(mut self) -> SubmissionOutcome<S> {
        let answer = match self.reason_not_to_send() {
            Some(reason) => error_answer(Outcome::NotSent, reason),
            None => self.send_with_retries().await,
        };
        self.command.into_outcome(answer)
    }

    async fn send_with_retries(&mut self) -> SubmissionAnswer {
        loop {
            let answer = self.attempt().await;
            let Some(delay) = self.retry_delay(&answer) else { return answer };
            // The wait may have lasted longer: the process may have been stopped meanwhile.
            if !self.wait(delay).await || !self.has_time_after(Duration::ZERO) {
                return answer;
            }
        }
    }

    /// Sends the batch once. The limits are tested last, because whatever comes before may take long.
    async fn attempt(&mut self) -> SubmissionAnswer {
        let abort = self.abort_reason();
        let url = match self.command.find_node(abort).await {
            Ok(url) => url,
            Err(answer) => return answer,
        };
        match self.reason_not_to_send() {
            Some(reason) => error_answer(Outcome::NotSent, reason),
            None => self.command.execute(&url, self.abort_reason()).await,
        }
    }

    fn reason_not_to_send(&self) -> Option<&'static str> {
        if self.shutdown.has_passed() {
            Some("the submitter shut down before the batch was sent")
        } else if !self.has_time_after(Duration::ZERO) {
            Some("too little of the submission's time limit was left to send the batch")
        } else {
            None
        }
    }

    /// Completes when an attempt that starts now must be aborted.
    fn abort_reason(&self) -> impl Future<Output = &'static str> + use<S> {
        let (shutdown, limit) = (self.shutdown.clone(), self.options.sending_limit);
        async move {
            tokio::select! {
                () = sleep(limit) => "the attempt reached its time limit without an answer",
                () = shutdown.passed() => "the submitter shut down before the ledger answered",
            }
        }
    }

    /// The delay before the next attempt, or `None` if this answer is final.
    fn retry_delay(&mut self, answer: &SubmissionAnswer) -> Option<Duration> {
        let (count, limit) = match answer.outcome {
            Outcome::Busy => (&mut self.busy_answers, self.options.busy_attempts),
            Outcome::NotSent => (&mut self.not_sent_answers, self.options.not_sent_attempts),
            // After an ambiguous outcome the ledger may have the batch; sending it again could apply
            // it twice.
            Outcome::Accepted
            | Outcome::Parked
            | Outcome::Rejected
            | Outcome::Refused
            | Outcome::Ambiguous => return None,
        };
        *count = count.saturating_add(1);
        if *count >= limit {
            return None;
        }
        let delay = self.delays.next_delay().max(answer.retry_after.unwrap_or_default());
        self.has_time_after(delay).then_some(delay)
    }

    /// Whether an attempt that starts after `delay` would end within the submission's time limit.
    fn has_time_after(&self, delay: Duration) -> bool {
        let elapsed = self.taken_at.longest_elapsed(&*self.clock);
        let longest = elapsed.saturating_add(delay).saturating_add(self.options.sending_limit);
        longest <= self.options.total_limit
    }

    /// Waits for `delay`. Returns `false` if a shutdown was requested meanwhile.
    async fn wait(&self, delay: Duration) -> bool {
        tokio::select! {
            biased;
            () = self.shutdown.requested() => false,
            () = sleep(delay) => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        future::{pending, ready},
        sync::Mutex,
    };

    use grid_batch_core::{
        GlobalScopeId, MonotonicTime, Submission, Timestamp,
        mocks::{MockNodeCheck, MockSubmissionSender, MockUrlResolver},
    };
    use grid_batch_support::Backoff;
    use tokio::time::Instant;

    use super::*;
    use crate::{SubmitterCounters, command::CommandFactory};

    const SECOND: Duration = Duration::from_secs(1);

    fn answer(outcome: Outcome, retry_after: Option<Duration>) -> SubmissionAnswer {
        SubmissionAnswer { outcome, status: Some(503), message: None, retry_after }
    }

    fn options() -> SubmitterOptions {
        SubmitterOptions {
            sending_limit: 5 * SECOND,
            total_limit: 60 * SECOND,
            drain_limit: 10 * SECOND,
            busy_attempts: 4,
            not_sent_attempts: 2,
            retry_backoff: Backoff { first: SECOND, longest: 4 * SECOND },
            seed: Some(7),
            ..SubmitterOptions::default()
        }
    }

    /// A clock that follows tokio's, and whose time of day can be set forward.
    #[derive(Debug)]
    struct TokioClock {
        started: Instant,
        set_forward: Mutex<Duration>,
    }

    impl TokioClock {
        fn new() -> Arc<Self> {
            Arc::new(Self { started: Instant::now(), set_forward: Mutex::default() })
        }
    }

    impl Clock for TokioClock {
        fn now(&self) -> Timestamp {
            let set_forward = *self.set_forward.lock().unwrap();
            Timestamp::default().plus(self.started.elapsed()).plus(set_forward)
        }

        fn monotonic(&self) -> MonotonicTime {
            MonotonicTime::default().plus(self.started.elapsed())
        }
    }

    fn controller(
        sender: MockSubmissionSender<GlobalScopeId>,
        options: SubmitterOptions,
    ) -> SubmissionController<GlobalScopeId> {
        controller_with(sender, None, options, TokioClock::new())
    }

    fn controller_with(
        sender: MockSubmissionSender<GlobalScopeId>,
        node_check: Option<MockNodeCheck<GlobalScopeId>>,
        options: SubmitterOptions,
        clock: Arc<TokioClock>,
    ) -> SubmissionController<GlobalScopeId> {
        let mut resolver = MockUrlResolver::new();
        resolver.expect_url().returning(|_| "http://ledger".to_owned());
        let factory = Arc::new(CommandFactory {
            url_resolver: Arc::new(resolver),
            url_health: None,
            node_check: node_check.map(|check| Arc::new(check) as Arc<_>),
            sender: Arc::new(sender),
            counters: SubmitterCounters::default(),
        });
        let submission = Submission::new("b".to_owned(), GlobalScopeId, Vec::new());
        let shutdown = ShutdownDeadline::new(options.drain_limit);
        let rng = options.rng();
        let command = factory.command(submission);
        let taken_at = Moment::now(&*clock);
        SubmissionController::new(command, Arc::new(options), shutdown, rng, (clock, taken_at))
    }

    /// A sender that returns these answers in turn and records the times of its calls.
    fn scripted(
        answers: impl IntoIterator<Item = SubmissionAnswer>,
    ) -> (MockSubmissionSender<GlobalScopeId>, Arc<Mutex<Vec<Instant>>>) {
        let answers: Vec<_> = answers.into_iter().collect();
        let calls = Arc::new(Mutex::new(Vec::new()));
        let mut sender = MockSubmissionSender::new();
        let recorded = Arc::clone(&calls);
        let count = answers.len();
        let mut answers = answers.into_iter();
        sender.expect_send().times(count).returning(move |_, _| {
            recorded.lock().unwrap().push(Instant::now());
            Box::pin(ready(answers.next().unwrap()))
        });
        (sender, calls)
    }

    /// The times between the calls.
    fn pauses(calls: &Mutex<Vec<Instant>>) -> Vec<Duration> {
        calls.lock().unwrap().windows(2).map(|pair| pair[1] - pair[0]).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn final_outcome_is_not_retried() {
        use Outcome::{Accepted, Ambiguous, Parked, Refused, Rejected};
        for outcome in [Accepted, Parked, Rejected, Refused, Ambiguous] {
            let (sender, _) = scripted([answer(outcome, Some(SECOND))]);
            let ended = controller(sender, options()).run().await;
            assert_eq!((ended.answer.outcome, ended.attempts), (outcome, 1));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn busy_ledger_is_retried_with_growing_delays() {
        let (sender, calls) = scripted(vec![answer(Outcome::Busy, None); 4]);
        let ended = controller(sender, options()).run().await;
        assert_eq!((ended.answer.outcome, ended.attempts), (Outcome::Busy, 4));
        let pauses = pauses(&calls);
        assert_eq!(pauses.len(), 3);
        for (pause, whole) in pauses.into_iter().zip([SECOND, 2 * SECOND, 4 * SECOND]) {
            // The timer is exact to a millisecond.
            let longest = whole + Duration::from_millis(2);
            assert!(whole / 2 <= pause && pause <= longest, "{pause:?} of {whole:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn retry_after_of_the_ledger_is_honored() {
        let requested = [10 * SECOND, 20 * SECOND];
        let busy = requested.map(|delay| answer(Outcome::Busy, Some(delay)));
        let (sender, calls) = scripted(busy.into_iter().chain([answer(Outcome::Accepted, None)]));
        let ended = controller(sender, options()).run().await;
        assert_eq!((ended.answer.outcome, ended.attempts), (Outcome::Accepted, 3));
        for (delay, requested) in pauses(&calls).into_iter().zip(requested) {
            assert!(
                requested <= delay && delay < requested + SECOND / 10,
                "{delay:?} for {requested:?}"
            );
        }
    }

    #[tokio::test(start_paused = true)]
    async fn unsent_batch_has_fewer_attempts() {
        let (sender, _) = scripted(vec![answer(Outcome::NotSent, None); 2]);
        let ended = controller(sender, options()).run().await;
        assert_eq!((ended.answer.outcome, ended.attempts), (Outcome::NotSent, 2));
    }

    #[tokio::test(start_paused = true)]
    async fn ambiguous_outcome_after_busy_is_final() {
        let (sender, _) = scripted([answer(Outcome::Busy, None), answer(Outcome::Ambiguous, None)]);
        let ended = controller(sender, options()).run().await;
        assert_eq!((ended.answer.outcome, ended.attempts), (Outcome::Ambiguous, 2));
    }

    #[tokio::test(start_paused = true)]
    async fn no_attempt_starts_that_could_exceed_the_total_limit() {
        let started = Instant::now();
        // A delay of 56 s and an attempt of up to 5 s exceed the limit of 60 s.
        let (sender, _) = scripted([answer(Outcome::Busy, Some(56 * SECOND))]);
        let ended = controller(sender, options()).run().await;
        assert_eq!((ended.answer.outcome, ended.attempts), (Outcome::Busy, 1));
        assert!(started.elapsed() < SECOND, "there is no wait for an attempt that cannot start");
        let (sender, _) = scripted([answer(Outcome::Busy, Some(Duration::MAX))]);
        assert_eq!(controller(sender, options()).run().await.attempts, 1);
    }

    #[tokio::test(start_paused = true)]
    async fn submission_that_waited_too_long_is_not_sent() {
        let (sender, _) = scripted([]);
        let controller = controller(sender, options());
        tokio::time::advance(56 * SECOND).await;
        let ended = controller.run().await;
        assert_eq!((ended.answer.outcome, ended.attempts), (Outcome::NotSent, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn attempt_over_its_time_limit_is_ambiguous() {
        let mut sender = MockSubmissionSender::new();
        sender.expect_send().once().returning(|_, _| Box::pin(pending()));
        let started = Instant::now();
        let ended = controller(sender, options()).run().await;
        assert_eq!((ended.answer.outcome, ended.attempts), (Outcome::Ambiguous, 1));
        assert_eq!(started.elapsed().as_secs(), 5);
    }

    #[tokio::test(start_paused = true)]
    async fn shutdown_ends_a_retry_wait_with_the_last_answer() {
        let (sender, calls) = scripted([answer(Outcome::Busy, Some(30 * SECOND))]);
        let controller = controller(sender, options());
        let shutdown = controller.shutdown.clone();
        let started = Instant::now();
        let running = tokio::spawn(controller.run());
        while calls.lock().unwrap().is_empty() {
            tokio::task::yield_now().await;
        }
        shutdown.request();
        let ended = running.await.unwrap();
        assert_eq!((ended.answer.outcome, ended.answer.status), (Outcome::Busy, Some(503)));
        assert!(started.elapsed() < SECOND);
    }

    #[tokio::test(start_paused = true)]
    async fn taken_batch_is_sent_until_the_shutdown_deadline() {
        let (sender, _) = scripted([answer(Outcome::Accepted, None)]);
        let first = controller(sender, options());
        first.shutdown.request();
        assert_eq!(first.run().await.answer.outcome, Outcome::Accepted);

        let (sender, _) = scripted([]);
        let second = controller(sender, options());
        second.shutdown.request();
        tokio::time::advance(11 * SECOND).await;
        let ended = second.run().await;
        assert_eq!((ended.answer.outcome, ended.attempts), (Outcome::NotSent, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn attempt_aborted_by_the_deadline_is_ambiguous() {
        let mut sender = MockSubmissionSender::new();
        sender.expect_send().once().returning(|_, _| Box::pin(pending()));
        let short = SubmitterOptions { drain_limit: SECOND, ..options() };
        let controller = controller(sender, short);
        controller.shutdown.request();
        let started = Instant::now();
        assert_eq!(controller.run().await.answer.outcome, Outcome::Ambiguous);
        assert_eq!(started.elapsed().as_secs(), 1);
    }

    /// As after the machine was suspended: the monotonic clock stood still.
    #[tokio::test(start_paused = true)]
    async fn batch_is_not_sent_after_the_time_of_day_jumped() {
        let clock = TokioClock::new();
        let (sender, _) = scripted([]);
        let controller = controller_with(sender, None, options(), Arc::clone(&clock));
        *clock.set_forward.lock().unwrap() = 56 * SECOND;
        let ended = controller.run().await;
        assert_eq!((ended.answer.outcome, ended.attempts), (Outcome::NotSent, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn batch_is_not_sent_again_after_a_wait_that_lasted_longer() {
        let clock = TokioClock::new();
        let (sender, calls) = scripted([answer(Outcome::Busy, Some(SECOND))]);
        let controller = controller_with(sender, None, options(), Arc::clone(&clock));
        let running = tokio::spawn(controller.run());
        while calls.lock().unwrap().is_empty() {
            tokio::task::yield_now().await;
        }
        *clock.set_forward.lock().unwrap() = 56 * SECOND;
        let ended = running.await.unwrap();
        assert_eq!((ended.answer.outcome, ended.attempts), (Outcome::Busy, 1));
    }

    /// A node check with this result, after this time.
    fn node_check(result: Result<(), String>, after: Duration) -> MockNodeCheck<GlobalScopeId> {
        let mut check = MockNodeCheck::new();
        check.expect_check().returning(move |_, _| {
            let result = result.clone();
            Box::pin(async move {
                sleep(after).await;
                result
            })
        });
        check
    }

    #[tokio::test(start_paused = true)]
    async fn batch_is_not_sent_to_a_node_that_fails_the_check() {
        let (sender, _) = scripted([]);
        let check = node_check(Err("it lags".to_owned()), Duration::ZERO);
        let controller = controller_with(sender, Some(check), options(), TokioClock::new());
        let ended = controller.run().await;
        assert_eq!((ended.answer.outcome, ended.attempts), (Outcome::NotSent, 2));
        assert_eq!(ended.answer.message.as_deref(), Some("it lags"));
    }

    #[tokio::test(start_paused = true)]
    async fn node_check_leaves_enough_time_or_nothing_is_sent() {
        let (sender, _) = scripted([]);
        let check = node_check(Ok(()), 4 * SECOND);
        let short = SubmitterOptions { total_limit: 8 * SECOND, ..options() };
        let controller = controller_with(sender, Some(check), short, TokioClock::new());
        assert_eq!(controller.run().await.answer.outcome, Outcome::NotSent);

        let (sender, _) = scripted([answer(Outcome::Accepted, None)]);
        let check = node_check(Ok(()), 4 * SECOND);
        let controller = controller_with(sender, Some(check), options(), TokioClock::new());
        assert_eq!(controller.run().await.answer.outcome, Outcome::Accepted);
    }

    #[tokio::test(start_paused = true)]
    async fn node_check_without_a_result_ends_at_the_sending_limit() {
        let (sender, _) = scripted([]);
        let started = Instant::now();
        let once = SubmitterOptions { not_sent_attempts: 1, ..options() };
        let check = node_check(Ok(()), Duration::from_hours(1));
        let controller = controller_with(sender, Some(check), once, TokioClock::new());
        assert_eq!(controller.run().await.answer.outcome, Outcome::NotSent);
        assert_eq!(started.elapsed().as_secs(), 5);
    }
}
