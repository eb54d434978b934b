use std::{sync::Arc, time::Duration};

use grid_batch_core::{Outcome, ScopeId, SubmissionAnswer, SubmissionOutcome};
use tokio::time::{Instant, sleep};

use crate::{
    SubmitterOptions,
    backoff::Delays,
    command::{SubmissionCommand, error_answer},
    drain::Drain,
};

/// Decides whether a batch is sent again, and when.
pub(crate) struct SubmissionController<S: ScopeId> {
    command: SubmissionCommand<S>,
    options: Arc<SubmitterOptions>,
    drain: Drain,
    delays: Delays,
    /// When the submission must have ended.
    deadline: Option<Instant>,
    busy: u16,
    not_sent: u16,
}

impl<S: ScopeId> SubmissionController<S> {
    /// Controls this command, for a submission that began at `taken_at`.
    pub(crate) fn new(
        command: SubmissionCommand<S>,
        options: Arc<SubmitterOptions>,
        drain: Drain,
        rng: fastrand::Rng,
        taken_at: Instant,
    ) -> Self {
        let delays = options.retry_backoff.delays(rng);
        let deadline = taken_at.checked_add(options.total_limit);
        Self { command, options, drain, delays, deadline, busy: 0, not_sent: 0 }
    }

    /// Sends the batch until it need not, or must not, be sent again.
    pub(crate) async fn run(mut self) -> SubmissionOutcome<S> {
        let answer = match self.reason_not_to_begin() {
            Some(reason) => error_answer(Outcome::NotSent, reason),
            None => self.send_repeatedly().await,
        };
        self.command.into_outcome(answer)
    }

    async fn send_repeatedly(&mut self) -> SubmissionAnswer {
        loop {
            let cut = self.cut();
            let answer = self.command.execute(cut).await;
            let Some(pause) = self.pause_after(&answer) else { return answer };
            if !self.wait(pause).await {
                return answer;
            }
        }
    }

    fn reason_not_to_begin(&self) -> Option<&'static str> {
        if self.drain.is_over() {
            Some("the submitter stopped before it could be sent")
        } else if !self.has_time_after(Duration::ZERO) {
            Some("the time limit was over before it could be sent")
        } else {
            None
        }
    }

    /// Ends when a sending that begins now is to be cut off.
    fn cut(&self) -> impl Future<Output = &'static str> + use<S> {
        let (drain, limit) = (self.drain.clone(), self.options.sending_limit);
        async move {
            tokio::select! {
                () = sleep(limit) => "the sending took longer than its time limit",
                () = drain.over() => "the submitter stopped before there was an answer",
            }
        }
    }

    /// How long to wait before sending again, or `None` where this answer is the last.
    fn pause_after(&mut self, answer: &SubmissionAnswer) -> Option<Duration> {
        let (count, limit) = match answer.outcome {
            Outcome::Busy => (&mut self.busy, self.options.busy_attempts),
            Outcome::NotSent => (&mut self.not_sent, self.options.not_sent_attempts),
            // An unknown outcome above all: it may be there, and must not be there twice.
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
        let pause = self.delays.after_failure().max(answer.retry_after.unwrap_or_default());
        self.has_time_after(pause).then_some(pause)
    }

    /// Whether a sending that begins after `pause` ends within the whole time limit.
    fn has_time_after(&self, pause: Duration) -> bool {
        let Some(deadline) = self.deadline else { return true };
        let longest = pause.saturating_add(self.options.sending_limit);
        Instant::now().checked_add(longest).is_some_and(|end| end <= deadline)
    }

    /// Waits; whether it is to be sent again then.
    async fn wait(&self, pause: Duration) -> bool {
        tokio::select! {
            biased;
            // A stop does not wait for what only waits itself.
            _ = self.drain.begun() => false,
            () = sleep(pause) => true,
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
        GlobalScopeId, Submission,
        mocks::{MockSubmissionSender, MockUrlResolver},
    };

    use super::*;
    use crate::{Backoff, SubmitterCounters, command::CommandFactory};

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

    fn controller(
        sender: MockSubmissionSender<GlobalScopeId>,
        options: SubmitterOptions,
    ) -> SubmissionController<GlobalScopeId> {
        let mut resolver = MockUrlResolver::new();
        resolver.expect_url().returning(|_| "http://ledger".to_owned());
        let factory = Arc::new(CommandFactory {
            url_resolver: Arc::new(resolver),
            url_health: None,
            sender: Arc::new(sender),
            counters: SubmitterCounters::default(),
        });
        let submission = Submission::new("b".to_owned(), GlobalScopeId, Vec::new());
        let drain = Drain::new(options.drain_limit);
        let rng = options.rng();
        let command = factory.command(submission);
        SubmissionController::new(command, Arc::new(options), drain, rng, Instant::now())
    }

    /// A sender that gives these answers one after the other, and notes when it was called.
    fn scripted(
        answers: impl IntoIterator<Item = SubmissionAnswer>,
    ) -> (MockSubmissionSender<GlobalScopeId>, Arc<Mutex<Vec<Instant>>>) {
        let answers: Vec<_> = answers.into_iter().collect();
        let calls = Arc::new(Mutex::new(Vec::new()));
        let mut sender = MockSubmissionSender::new();
        let noted = Arc::clone(&calls);
        let count = answers.len();
        let mut answers = answers.into_iter();
        sender.expect_send().times(count).returning(move |_, _| {
            noted.lock().unwrap().push(Instant::now());
            Box::pin(ready(answers.next().unwrap()))
        });
        (sender, calls)
    }

    /// The times between the calls.
    fn pauses(calls: &Mutex<Vec<Instant>>) -> Vec<Duration> {
        calls.lock().unwrap().windows(2).map(|pair| pair[1] - pair[0]).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_final_is_final_at_once() {
        use Outcome::{Accepted, Ambiguous, Parked, Refused, Rejected};
        for outcome in [Accepted, Parked, Rejected, Refused, Ambiguous] {
            let (sender, _) = scripted([answer(outcome, Some(SECOND))]);
            let ended = controller(sender, options()).run().await;
            assert_eq!((ended.answer.outcome, ended.attempts), (outcome, 1));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_busy_ledger_is_asked_again_with_growing_pauses_and_then_reported() {
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
    async fn a_ledger_that_asks_for_a_longer_pause_gets_it() {
        let asked = [10 * SECOND, 20 * SECOND];
        let busy = asked.map(|pause| answer(Outcome::Busy, Some(pause)));
        let (sender, calls) = scripted(busy.into_iter().chain([answer(Outcome::Accepted, None)]));
        let ended = controller(sender, options()).run().await;
        assert_eq!((ended.answer.outcome, ended.attempts), (Outcome::Accepted, 3));
        for (pause, asked) in pauses(&calls).into_iter().zip(asked) {
            assert!(asked <= pause && pause < asked + SECOND / 10, "{pause:?} for {asked:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_never_reaches_the_ledger_is_tried_fewer_times() {
        let (sender, _) = scripted(vec![answer(Outcome::NotSent, None); 2]);
        let ended = controller(sender, options()).run().await;
        assert_eq!((ended.answer.outcome, ended.attempts), (Outcome::NotSent, 2));
    }

    #[tokio::test(start_paused = true)]
    async fn an_unknown_outcome_after_a_busy_one_is_final() {
        let (sender, _) = scripted([answer(Outcome::Busy, None), answer(Outcome::Ambiguous, None)]);
        let ended = controller(sender, options()).run().await;
        assert_eq!((ended.answer.outcome, ended.attempts), (Outcome::Ambiguous, 2));
    }

    #[tokio::test(start_paused = true)]
    async fn no_sending_begins_that_could_not_end_within_the_time_limit() {
        let begun = Instant::now();
        // 56 seconds and a sending of up to 5 are more than 60.
        let (sender, _) = scripted([answer(Outcome::Busy, Some(56 * SECOND))]);
        let ended = controller(sender, options()).run().await;
        assert_eq!((ended.answer.outcome, ended.attempts), (Outcome::Busy, 1));
        assert!(begun.elapsed() < SECOND, "nor is it waited for");
        let (sender, _) = scripted([answer(Outcome::Busy, Some(Duration::MAX))]);
        assert_eq!(controller(sender, options()).run().await.attempts, 1);
    }

    #[tokio::test(start_paused = true)]
    async fn what_waited_too_long_for_its_turn_is_not_sent() {
        let (sender, _) = scripted([]);
        let controller = controller(sender, options());
        tokio::time::advance(56 * SECOND).await;
        let ended = controller.run().await;
        assert_eq!((ended.answer.outcome, ended.attempts), (Outcome::NotSent, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn a_sending_that_takes_too_long_is_cut_off_and_in_doubt() {
        let mut sender = MockSubmissionSender::new();
        sender.expect_send().once().returning(|_, _| Box::pin(pending()));
        let begun = Instant::now();
        let ended = controller(sender, options()).run().await;
        assert_eq!((ended.answer.outcome, ended.attempts), (Outcome::Ambiguous, 1));
        assert_eq!(begun.elapsed().as_secs(), 5);
    }

    #[tokio::test(start_paused = true)]
    async fn a_stop_ends_what_waits_with_its_last_answer() {
        let (sender, calls) = scripted([answer(Outcome::Busy, Some(30 * SECOND))]);
        let controller = controller(sender, options());
        let drain = controller.drain.clone();
        let begun = Instant::now();
        let running = tokio::spawn(controller.run());
        while calls.lock().unwrap().is_empty() {
            tokio::task::yield_now().await;
        }
        drain.begin();
        let ended = running.await.unwrap();
        assert_eq!((ended.answer.outcome, ended.answer.status), (Outcome::Busy, Some(503)));
        assert!(begun.elapsed() < SECOND);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_taken_is_sent_although_a_stop_has_begun_but_not_when_it_is_over() {
        let (sender, _) = scripted([answer(Outcome::Accepted, None)]);
        let first = controller(sender, options());
        first.drain.begin();
        assert_eq!(first.run().await.answer.outcome, Outcome::Accepted);

        let (sender, _) = scripted([]);
        let second = controller(sender, options());
        second.drain.begin();
        tokio::time::advance(11 * SECOND).await;
        let ended = second.run().await;
        assert_eq!((ended.answer.outcome, ended.attempts), (Outcome::NotSent, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn a_sending_that_outlasts_the_stop_is_in_doubt() {
        let mut sender = MockSubmissionSender::new();
        sender.expect_send().once().returning(|_, _| Box::pin(pending()));
        let short = SubmitterOptions { drain_limit: SECOND, ..options() };
        let controller = controller(sender, short);
        controller.drain.begin();
        let begun = Instant::now();
        assert_eq!(controller.run().await.answer.outcome, Outcome::Ambiguous);
        assert_eq!(begun.elapsed().as_secs(), 1);
    }
}
