use std::{sync::Arc, time::Duration};

use grid_batch_core::ledger::{Outcome, SubmissionAnswer, SubmissionOutcome};
use grid_batch_core::{Clock, Moment, ScopeId};
use tokio::time::sleep;

use crate::{
    SubmitterOptions,
    command::{SubmissionCommand, error_answer},
    shutdown_deadline::ShutdownDeadline,
};

/// Decides whether a batch is sent again. It never waits: a batch that the ledger does not accept goes
/// back to its store, which has it tried later, so that it takes no place from others.
pub(crate) struct SubmissionController<S: ScopeId> {
    command: SubmissionCommand<S>,
    options: Arc<SubmitterOptions>,
    shutdown: ShutdownDeadline,
    clock: Arc<dyn Clock>,
    /// When the submission was taken: its time limit starts then.
    taken_at: Moment,
    /// The nodes that the batch did not reach.
    not_reached: Vec<String>,
}

impl<S: ScopeId> SubmissionController<S> {
    /// Controls `command`, whose submission was taken at `taken_at`.
    pub(crate) fn new(
        command: SubmissionCommand<S>,
        options: Arc<SubmitterOptions>,
        shutdown: ShutdownDeadline,
        clock: Arc<dyn Clock>,
        taken_at: Moment,
    ) -> Self {
        Self { command, options, shutdown, clock, taken_at, not_reached: Vec::new() }
    }

    /// Sends the batch, with those of its list, until a node answers, or none that is left can be reached. Returns an
    /// outcome for each.
    pub(crate) async fn run(mut self) -> Vec<SubmissionOutcome<S>> {
        let answer = match self.reason_not_to_send() {
            Some(reason) => error_answer(Outcome::NotSent, reason),
            None => self.send_to_nodes().await,
        };
        self.command.into_outcomes(answer)
    }

    async fn send_to_nodes(&mut self) -> SubmissionAnswer {
        let mut answer = self.attempt(None).await;
        while answer.outcome == Outcome::NotSent && self.may_try_another_node() {
            let next = match self.command.url() {
                Ok(url) if !self.not_reached.contains(&url) => url,
                _ => break,
            };
            answer = self.attempt(Some(next)).await;
        }
        answer
    }

    /// Sends the batch once. The limits are tested last, because whatever comes before may take long.
    async fn attempt(&mut self, url: Option<String>) -> SubmissionAnswer {
        let url = match url.map_or_else(|| self.command.url(), Ok) {
            Ok(url) => url,
            Err(answer) => return self.command.without_address(answer),
        };
        self.not_reached.push(url.clone());
        if let Err(answer) = self.command.check(&url, self.abort_reason()).await {
            return answer;
        }
        match self.reason_not_to_send() {
            Some(reason) => error_answer(Outcome::NotSent, reason),
            None if !self.command.may_send() => called_back(),
            None => self.command.execute(&url, self.abort_reason()).await,
        }
    }

    /// Whether there is time for another node: not after a shutdown was requested.
    fn may_try_another_node(&self) -> bool {
        self.not_reached.len() < usize::from(self.options.not_sent_attempts)
            && !self.shutdown.is_requested()
            && self.has_time()
    }

    fn reason_not_to_send(&self) -> Option<&'static str> {
        if self.shutdown.has_passed() {
            Some("the submitter shut down before the batch was sent")
        } else if !self.has_time() {
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

    /// Whether an attempt that starts now would end within the submission's time limit.
    fn has_time(&self) -> bool {
        let elapsed = self.taken_at.longest_elapsed(&*self.clock);
        elapsed.saturating_add(self.options.sending_limit) <= self.options.total_limit
    }
}

/// The answer for a batch that an operator has stopped before it was sent. That is no failure.
fn called_back() -> SubmissionAnswer {
    let reason = "called back before it was sent";
    let retry_after = Some(Duration::ZERO);
    SubmissionAnswer { retry_after, ..error_answer(Outcome::Parked, reason) }
}

#[cfg(test)]
mod tests {
    use std::{
        future::{pending, ready},
        sync::Mutex,
    };

    use futures_core::future::BoxFuture;
    use grid_batch_core::claims::SubmittedBatch;
    use grid_batch_core::ledger::{AttemptId, Submission};
    use grid_batch_core::queue::TakenBatch;
    use grid_batch_core::{GlobalScopeId, ItemId, MonotonicTime, Timestamp};
    use grid_batch_work::WorkTable;
    use mockall::mock;
    use tokio::time::Instant;

    use super::*;
    use crate::{
        SubmissionSender, SubmitterCounters,
        command::CommandFactory,
        mocks::{MockSubmissionSender, MockUrlResolver},
    };

    /// The only outcome of a batch that is sent by itself.
    fn only(
        outcomes: Vec<SubmissionOutcome<GlobalScopeId>>,
    ) -> [SubmissionOutcome<GlobalScopeId>; 1] {
        outcomes.try_into().unwrap()
    }

    const SECOND: Duration = Duration::from_secs(1);

    fn answer(outcome: Outcome, retry_after: Option<Duration>) -> SubmissionAnswer {
        SubmissionAnswer { outcome, status: Some(503), message: None, retry_after }
    }

    fn options() -> SubmitterOptions {
        SubmitterOptions {
            sending_limit: 5 * SECOND,
            total_limit: 60 * SECOND,
            drain_limit: 10 * SECOND,
            not_sent_attempts: 2,
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

    mock! {
        NodeCheck {
            fn check(&self, url: &str, submission: &Submission<GlobalScopeId>)
                -> BoxFuture<'static, Result<(), String>>;
        }
    }

    /// A sender whose check of a node, if it has one, is mocked.
    struct TestSender {
        sender: MockSubmissionSender<GlobalScopeId>,
        node_check: Option<MockNodeCheck>,
    }

    impl SubmissionSender for TestSender {
        type Id = GlobalScopeId;

        fn send<'a>(
            &'a self,
            url: &'a str,
            submission: &'a Submission<GlobalScopeId>,
        ) -> BoxFuture<'a, SubmissionAnswer> {
            self.sender.send(url, submission)
        }

        fn check_node<'a>(
            &'a self,
            url: &'a str,
            submission: &'a Submission<GlobalScopeId>,
        ) -> BoxFuture<'a, Result<(), String>> {
            match &self.node_check {
                Some(check) => check.check(url, submission),
                None => Box::pin(ready(Ok(()))),
            }
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
        node_check: Option<MockNodeCheck>,
        options: SubmitterOptions,
        clock: Arc<TokioClock>,
    ) -> SubmissionController<GlobalScopeId> {
        controller_of(resolver(), sender, node_check, options, clock, WorkTable::default())
    }

    fn resolver() -> MockUrlResolver<GlobalScopeId> {
        let mut resolver = MockUrlResolver::new();
        resolver.expect_url().returning(|_| "http://ledger".to_owned());
        resolver
    }

    const ATTEMPT: AttemptId = AttemptId { attempt: 1, epoch: 1 };

    fn batch_id() -> ItemId {
        ItemId::from_bytes([1; 64])
    }

    fn controller_of(
        resolver: MockUrlResolver<GlobalScopeId>,
        sender: MockSubmissionSender<GlobalScopeId>,
        node_check: Option<MockNodeCheck>,
        options: SubmitterOptions,
        clock: Arc<TokioClock>,
        table: WorkTable,
    ) -> SubmissionController<GlobalScopeId> {
        let factory = Arc::new(CommandFactory {
            url_resolver: Arc::new(resolver),
            sender: Arc::new(TestSender { sender, node_check }),
            counters: SubmitterCounters::default(),
            table,
            clock: Arc::<TokioClock>::clone(&clock),
        });
        let submission = Submission::new(batch_id().to_string(), GlobalScopeId, Vec::new())
            .with_attempt_id(ATTEMPT);
        let shutdown = ShutdownDeadline::new(options.drain_limit);
        let command = factory.command(submission);
        let taken_at = Moment::now(&*clock);
        SubmissionController::new(command, Arc::new(options), shutdown, clock, taken_at)
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

    #[tokio::test(start_paused = true)]
    async fn outcome_is_reported_at_once() {
        use Outcome::{Accepted, Ambiguous, Busy, NotSent, Parked, Refused, Rejected};
        let started = Instant::now();
        for outcome in [Accepted, Busy, NotSent, Parked, Rejected, Refused, Ambiguous] {
            let (sender, _) = scripted([answer(outcome, Some(SECOND))]);
            let [ended] = only(controller(sender, options()).run().await);
            assert_eq!((ended.answer.outcome, ended.attempts), (outcome, 1));
            assert_eq!(ended.answer.retry_after, Some(SECOND));
        }
        assert_eq!(started.elapsed(), Duration::ZERO, "nothing waits");
    }

    /// A controller whose resolver names these addresses in turn.
    fn controller_of_nodes(
        sender: MockSubmissionSender<GlobalScopeId>,
        urls: &'static [&'static str],
        options: SubmitterOptions,
    ) -> SubmissionController<GlobalScopeId> {
        let mut resolver = MockUrlResolver::new();
        let mut urls = urls.iter();
        resolver.expect_url().returning(move |_| (*urls.next().unwrap()).to_owned());
        controller_of(resolver, sender, None, options, TokioClock::new(), WorkTable::default())
    }

    #[tokio::test(start_paused = true)]
    async fn batch_that_does_not_reach_a_node_is_sent_to_others() {
        use Outcome::{Accepted, Busy, NotSent};
        for (urls, not_sent_attempts, answers, expected) in [
            (&["a", "b"][..], 3, &[NotSent, Accepted][..], Accepted),
            (&["a", "b", "c"], 3, &[NotSent, NotSent, Busy], Busy),
            (&["a", "b"], 2, &[NotSent, NotSent], NotSent),
            (&["a", "b", "a"], 9, &[NotSent, NotSent], NotSent),
        ] {
            let (sender, _) = scripted(answers.iter().map(|outcome| answer(*outcome, None)));
            let limited = SubmitterOptions { not_sent_attempts, ..options() };
            let [ended] = only(controller_of_nodes(sender, urls, limited).run().await);
            assert_eq!(ended.answer.outcome, expected);
            assert_eq!(usize::from(ended.attempts), answers.len());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn no_other_node_is_tried_after_a_shutdown_request() {
        let (sender, _) = scripted([answer(Outcome::NotSent, None)]);
        let controller = controller_of_nodes(sender, &["a", "b"], options());
        controller.shutdown.request();
        let [ended] = only(controller.run().await);
        assert_eq!((ended.answer.outcome, ended.attempts), (Outcome::NotSent, 1));
    }

    #[tokio::test(start_paused = true)]
    async fn submission_that_waited_too_long_is_not_sent() {
        let (sender, _) = scripted([]);
        let controller = controller(sender, options());
        tokio::time::advance(56 * SECOND).await;
        let [ended] = only(controller.run().await);
        assert_eq!((ended.answer.outcome, ended.attempts), (Outcome::NotSent, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn attempt_over_its_time_limit_is_ambiguous() {
        let mut sender = MockSubmissionSender::new();
        sender.expect_send().once().returning(|_, _| Box::pin(pending()));
        let started = Instant::now();
        let [ended] = only(controller(sender, options()).run().await);
        assert_eq!((ended.answer.outcome, ended.attempts), (Outcome::Ambiguous, 1));
        assert_eq!(started.elapsed().as_secs(), 5);
    }

    #[tokio::test(start_paused = true)]
    async fn taken_batch_is_sent_until_the_shutdown_deadline() {
        let (sender, _) = scripted([answer(Outcome::Accepted, None)]);
        let first = controller(sender, options());
        first.shutdown.request();
        assert_eq!(first.run().await[0].answer.outcome, Outcome::Accepted);

        let (sender, _) = scripted([]);
        let second = controller(sender, options());
        second.shutdown.request();
        tokio::time::advance(11 * SECOND).await;
        let [ended] = only(second.run().await);
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
        assert_eq!(controller.run().await[0].answer.outcome, Outcome::Ambiguous);
        assert_eq!(started.elapsed().as_secs(), 1);
    }

    /// As after the machine was suspended: the monotonic clock stood still.
    #[tokio::test(start_paused = true)]
    async fn batch_is_not_sent_after_the_time_of_day_jumped() {
        let clock = TokioClock::new();
        let (sender, _) = scripted([]);
        let controller = controller_with(sender, None, options(), Arc::clone(&clock));
        *clock.set_forward.lock().unwrap() = 56 * SECOND;
        let [ended] = only(controller.run().await);
        assert_eq!((ended.answer.outcome, ended.attempts), (Outcome::NotSent, 0));
    }

    /// A node check with this result, after this time.
    fn node_check(result: Result<(), String>, after: Duration) -> MockNodeCheck {
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
    async fn batch_is_not_sent_after_a_check_that_lasted_longer() {
        let clock = TokioClock::new();
        let mut check = MockNodeCheck::new();
        let set_forward = Arc::clone(&clock);
        check.expect_check().once().returning(move |_, _| {
            *set_forward.set_forward.lock().unwrap() = 56 * SECOND;
            Box::pin(ready(Ok(())))
        });
        let (sender, _) = scripted([]);
        let [ended] = only(controller_with(sender, Some(check), options(), clock).run().await);
        assert_eq!((ended.answer.outcome, ended.attempts), (Outcome::NotSent, 1));
    }

    #[tokio::test(start_paused = true)]
    async fn batch_is_not_sent_to_a_node_that_fails_the_check() {
        let (sender, _) = scripted([]);
        let check = node_check(Err("it lags".to_owned()), Duration::ZERO);
        let controller = controller_with(sender, Some(check), options(), TokioClock::new());
        let [ended] = only(controller.run().await);
        assert_eq!((ended.answer.outcome, ended.attempts), (Outcome::NotSent, 1));
        assert_eq!(ended.answer.message.as_deref(), Some("http://ledger: it lags"));
    }

    #[tokio::test(start_paused = true)]
    async fn batch_that_is_called_back_is_not_sent() {
        let (sender, _) = scripted([]);
        let taken = TakenBatch {
            service_id: GlobalScopeId.service_id().clone(),
            batch_id: batch_id(),
            attempt: ATTEMPT.attempt,
            epoch: ATTEMPT.epoch,
            serialized_batch: Vec::new(),
            deadline: None,
            trace: None,
            joins_list: false,
        };
        let table = WorkTable::default();
        table.lock().attempt_taken(&taken, MonotonicTime::default());
        let called_back = table.clone();
        let mut check = MockNodeCheck::new();
        check.expect_check().once().returning(move |_, _| {
            let attempt = SubmittedBatch {
                service_id: GlobalScopeId.service_id().clone(),
                batch_id: batch_id(),
                attempt_id: ATTEMPT,
            };
            assert_eq!(called_back.lock().call_back(vec![attempt.clone()]), [attempt]);
            Box::pin(ready(Ok(())))
        });
        let clock = TokioClock::new();
        let controller = controller_of(resolver(), sender, Some(check), options(), clock, table);
        let [ended] = only(controller.run().await);
        assert_eq!((ended.answer.outcome, ended.attempts), (Outcome::Parked, 1));
    }

    /// Accepts all that it is given at once.
    struct ListSender;

    impl SubmissionSender for ListSender {
        type Id = GlobalScopeId;

        fn send<'a>(
            &'a self,
            _url: &'a str,
            _submission: &'a Submission<GlobalScopeId>,
        ) -> BoxFuture<'a, SubmissionAnswer> {
            Box::pin(ready(answer(Outcome::Accepted, None)))
        }

        fn send_list<'a>(
            &'a self,
            _url: &'a str,
            list: &'a [Submission<GlobalScopeId>],
        ) -> BoxFuture<'a, Vec<SubmissionAnswer>> {
            Box::pin(ready(vec![answer(Outcome::Accepted, None); list.len()]))
        }
    }

    /// The outcomes of a list of three batches, of which this one is called back.
    async fn outcomes_of_list(called_back: u8) -> Vec<Outcome> {
        let clock = TokioClock::new();
        let table = WorkTable::default();
        let id = |number| ItemId::from_bytes([number; 64]);
        let submission = |number| {
            Submission::new(id(number).to_string(), GlobalScopeId, Vec::new())
                .with_attempt_id(ATTEMPT)
        };
        let attempt = SubmittedBatch {
            service_id: GlobalScopeId.service_id().clone(),
            batch_id: id(called_back),
            attempt_id: ATTEMPT,
        };
        let taken = TakenBatch::without_bytes(attempt.clone());
        table.lock().attempt_taken(&taken, MonotonicTime::default());
        table.lock().call_back(vec![attempt]);
        let factory = Arc::new(CommandFactory {
            url_resolver: Arc::new(resolver()),
            sender: Arc::new(ListSender),
            counters: SubmitterCounters::default(),
            table,
            clock: Arc::<TokioClock>::clone(&clock),
        });
        let list = submission(1).with_list(vec![submission(2), submission(3)]);
        let shutdown = ShutdownDeadline::new(SECOND);
        let (command, taken_at) = (factory.command(list), Moment::now(&*clock));
        let controller =
            SubmissionController::new(command, Arc::new(options()), shutdown, clock, taken_at);
        controller.run().await.iter().map(|ended| ended.answer.outcome).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn batch_that_is_called_back_ends_its_list() {
        use Outcome::{Accepted, Parked};
        assert_eq!(outcomes_of_list(9).await, [Accepted; 3]);
        assert_eq!(outcomes_of_list(3).await, [Accepted, Accepted, Parked]);
        assert_eq!(outcomes_of_list(2).await, [Accepted, Parked, Parked]);
        assert_eq!(outcomes_of_list(1).await, [Parked; 3]);
    }

    #[tokio::test(start_paused = true)]
    async fn node_check_leaves_enough_time_or_nothing_is_sent() {
        let (sender, _) = scripted([]);
        let check = node_check(Ok(()), 4 * SECOND);
        let short = SubmitterOptions { total_limit: 8 * SECOND, ..options() };
        let controller = controller_with(sender, Some(check), short, TokioClock::new());
        assert_eq!(controller.run().await[0].answer.outcome, Outcome::NotSent);

        let (sender, _) = scripted([answer(Outcome::Accepted, None)]);
        let check = node_check(Ok(()), 4 * SECOND);
        let controller = controller_with(sender, Some(check), options(), TokioClock::new());
        assert_eq!(controller.run().await[0].answer.outcome, Outcome::Accepted);
    }

    #[tokio::test(start_paused = true)]
    async fn node_check_without_a_result_ends_at_the_sending_limit() {
        let (sender, _) = scripted([]);
        let started = Instant::now();
        let check = node_check(Ok(()), Duration::from_hours(1));
        let controller = controller_with(sender, Some(check), options(), TokioClock::new());
        assert_eq!(controller.run().await[0].answer.outcome, Outcome::NotSent);
        assert_eq!(started.elapsed().as_secs(), 5);
    }
}
