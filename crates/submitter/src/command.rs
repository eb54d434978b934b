use std::{fmt, sync::Arc, time::Duration};

use grid_batch_core::batches::{Deadline, TimeLeft};
use grid_batch_core::ledger::{Outcome, Submission, SubmissionAnswer, SubmissionOutcome};
use grid_batch_core::{BatchError, Clock, ScopeId};
use grid_batch_support::{Panic, catch_panic, catch_panic_async, redact_url, redact_userinfo};
use grid_batch_work::WorkTable;
use log::error;

use crate::{NO_ADDRESS, SubmissionSender, SubmitterCounters, UrlResolver};

/// Creates the commands of a submitter, which share its resolver and sender.
pub(crate) struct CommandFactory<S: ScopeId> {
    pub(crate) url_resolver: Arc<dyn UrlResolver<Id = S>>,
    pub(crate) sender: Arc<dyn SubmissionSender<Id = S>>,
    pub(crate) counters: SubmitterCounters,
    pub(crate) table: WorkTable,
    pub(crate) clock: Arc<dyn Clock>,
}

impl<S: ScopeId> CommandFactory<S> {
    pub(crate) fn command(self: &Arc<Self>, submission: Submission<S>) -> SubmissionCommand<S> {
        let factory = Arc::clone(self);
        let mut list = vec![submission];
        let rest = list[0].take_list();
        list.extend(rest);
        SubmissionCommand { factory, list, listed: Vec::new(), attempts: 0, is_sent: false }
    }
}

impl<S: ScopeId> fmt::Debug for CommandFactory<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CommandFactory").field("url_resolver", &self.url_resolver).finish()
    }
}

/// Sends one batch, or several in one request, each time it is executed, and counts the attempts.
pub(crate) struct SubmissionCommand<S: ScopeId> {
    factory: Arc<CommandFactory<S>>,
    /// At least one. Checks and the address are those of the first.
    list: Vec<Submission<S>>,
    /// The answers to those behind the first that were sent with it.
    listed: Vec<SubmissionAnswer>,
    attempts: u16,
    /// A node may have received the batch.
    is_sent: bool,
}

impl<S: ScopeId> SubmissionCommand<S> {
    /// Begins an attempt at this address: checks the node there.
    ///
    /// `abort` ends the check with its reason. An error ends the attempt; nothing was sent.
    pub(crate) async fn check(
        &mut self,
        url: &str,
        abort: impl Future<Output = &'static str>,
    ) -> Result<(), SubmissionAnswer> {
        self.attempts = self.attempts.saturating_add(1);
        let mut is_confirming = true;
        let checks = async {
            self.confirm(url).await?;
            is_confirming = false;
            self.check_node(url).await?;
            let expired = self.check_deadline(url).await?;
            is_confirming = true;
            // The answers may have taken long, and a connection may have failed meanwhile.
            self.confirm(url).await?;
            Ok(expired)
        };
        let checked = tokio::select! {
            biased;
            checked = checks => checked,
            reason = abort => Err(reason.to_owned()),
        };
        // A node that does not confirm its ledger may only be slow: that is no failed connection.
        let reported = if is_confirming { Outcome::Refused } else { Outcome::NotSent };
        let expired = checked.map_err(|reason| {
            self.report(url, reported);
            with_node(url, error_answer(Outcome::NotSent, redact_userinfo(&reason)))
        })?;
        match expired {
            Some(answer) => Err(answer),
            None => Ok(()),
        }
    }

    /// Ends an attempt that has this answer instead of an address.
    pub(crate) fn without_address(&mut self, answer: SubmissionAnswer) -> SubmissionAnswer {
        self.attempts = self.attempts.saturating_add(1);
        answer
    }

    /// Sends the batch once, to this address.
    ///
    /// If `abort` completes first, it ends the attempt with its reason, and the outcome is
    /// ambiguous.
    pub(crate) async fn execute(
        &mut self,
        url: &str,
        abort: impl Future<Output = &'static str>,
    ) -> SubmissionAnswer {
        let sendable = self.sendable();
        let sent = tokio::select! {
            biased;
            answers = self.send(url, &self.list[..sendable]) => answers,
            reason = abort => vec![error_answer(Outcome::Ambiguous, reason); sendable],
        };
        let mut sent = sent.into_iter();
        let missing = || error_answer(Outcome::Ambiguous, "the sender gave no answer");
        let answer = sent.next().unwrap_or_else(missing);
        self.listed = sent.take(sendable.saturating_sub(1)).collect();
        let mut work = self.factory.table.lock();
        for (submission, answer) in self.list.iter().zip([&answer].into_iter().chain(&self.listed))
        {
            let (service_id, batch_id) = ids(submission);
            if answer.may_have_reached_node()
                && work.was_sent_again(service_id, batch_id, attempt(submission))
            {
                self.factory.counters.count_sent_again();
            }
        }
        drop(work);
        self.is_sent |= answer.may_have_reached_node();
        self.report(url, answer.outcome);
        answer
    }

    /// Whether the first batch may be sent now: it was not called back. From then on, it counts as sent.
    pub(crate) fn may_send(&self) -> bool {
        self.may_send_one(self.first())
    }

    fn may_send_one(&self, submission: &Submission<S>) -> bool {
        let (service_id, batch_id) = ids(submission);
        let mut work = self.factory.table.lock();
        let may_send = |attempt_id| work.may_send(service_id, batch_id, attempt_id);
        submission.attempt_id().is_none_or(may_send)
    }

    /// How many of the first batches may be sent, if the first may. One that was called back ends the list.
    fn sendable(&self) -> usize {
        1 + self.list.iter().skip(1).take_while(|submission| self.may_send_one(submission)).count()
    }

    /// The outcome of each batch, if the last attempt of the first had this answer.
    pub(crate) fn into_outcomes(self, answer: SubmissionAnswer) -> Vec<SubmissionOutcome<S>> {
        if !self.is_sent {
            let ((service_id, batch_id), now) = (ids(self.first()), self.factory.clock.monotonic());
            let mut work = self.factory.table.lock();
            work.record_unsent(service_id, batch_id, attempt(self.first()), now);
        }
        let mut answers = [answer].into_iter().chain(self.listed);
        let outcome = |submission: Submission<S>| {
            let answer = answers.next().unwrap_or_else(not_sent_with_first);
            let (attempt_id, deadline) = (submission.attempt_id(), submission.deadline());
            let (batch_header, scope_id, _) = submission.into_parts();
            let attempts = self.attempts;
            SubmissionOutcome { batch_header, scope_id, attempt_id, deadline, attempts, answer }
        };
        self.list.into_iter().map(outcome).collect()
    }

    /// The address that the resolver names now, or an answer instead of one.
    pub(crate) fn url(&self) -> Result<String, SubmissionAnswer> {
        let url = catch_panic(|| self.factory.url_resolver.url(self.first().scope_id()));
        let url = url.map_err(|panic| {
            self.count_panic("the URL resolver", &panic);
            error_answer(Outcome::NotSent, format!("the URL resolver panicked: {panic}"))
        })?;
        match url.strip_prefix(NO_ADDRESS) {
            Some(reason) => Err(error_answer(Outcome::Refused, reason.trim_start())),
            None => Ok(url),
        }
    }

    async fn confirm(&self, url: &str) -> Result<(), String> {
        self.caught("the URL resolver", || self.factory.url_resolver.confirm(url)).await
    }

    async fn check_node(&self, url: &str) -> Result<(), String> {
        let sender = &self.factory.sender;
        self.caught("the node check", || sender.check_node(url, self.first())).await
    }

    /// The result of a check; a panic of `part` is an error.
    async fn caught<F: Future<Output = Result<(), String>>>(
        &self,
        part: &str,
        start: impl FnOnce() -> F,
    ) -> Result<(), String> {
        let checked = match catch_panic(start) {
            Ok(checking) => catch_panic_async(checking).await,
            Err(panic) => Err(panic),
        };
        checked.unwrap_or_else(|panic| {
            self.count_panic(part, &panic);
            Err(format!("{part} panicked: {panic}"))
        })
    }

    /// The answer in place of the ledger's if the deadline of the batch has passed there. The error is why the batch
    /// is not sent before.
    async fn check_deadline(&self, url: &str) -> Result<Option<SubmissionAnswer>, String> {
        let Some(deadline) = self.first().deadline() else { return Ok(None) };
        let asked = match catch_panic(|| self.factory.sender.position(url)) {
            Ok(asking) => catch_panic_async(asking).await,
            Err(panic) => Err(panic),
        };
        let position = asked.unwrap_or_else(|panic| {
            self.count_panic("the sender", &panic);
            Err(BatchError::InternalError(format!("the sender panicked: {panic}")))
        });
        let position = position.map_err(|error| error.to_string())?;
        match position.time_left(deadline) {
            TimeLeft::Enough => Ok(None),
            TimeLeft::TooLittle => Ok(Some(with_node(
                url,
                error_answer(
                    Outcome::NotSent,
                    format!("too little is left until the deadline of the batch, {deadline:#}"),
                ),
            ))),
            TimeLeft::Nothing => Ok(Some(expired(deadline))),
        }
    }

    fn first(&self) -> &Submission<S> {
        &self.list[0]
    }

    async fn send(&self, url: &str, list: &[Submission<S>]) -> Vec<SubmissionAnswer> {
        let sending = || match list {
            [one] => {
                let sending = self.factory.sender.send(url, one);
                Box::pin(async { vec![sending.await] })
            }
            list => self.factory.sender.send_list(url, list),
        };
        let sent = match catch_panic(sending) {
            Ok(sending) => catch_panic_async(sending).await,
            Err(panic) => Err(panic),
        };
        let answers = sent.unwrap_or_else(|panic| {
            self.count_panic("the sender", &panic);
            let answer = error_answer(Outcome::Ambiguous, format!("the sender panicked: {panic}"));
            vec![answer; list.len()]
        });
        let readable = |mut answer: SubmissionAnswer| {
            answer.message = answer.message.map(|text| redact_userinfo(&text).into_owned());
            with_node(url, answer)
        };
        answers.into_iter().map(readable).collect()
    }

    fn report(&self, url: &str, outcome: Outcome) {
        let (resolver, batch_header) = (&self.factory.url_resolver, self.first().batch_header());
        if let Err(panic) = catch_panic(|| resolver.report(batch_header, url, outcome)) {
            self.count_panic("the URL resolver", &panic);
        }
    }

    fn count_panic(&self, part: &str, panic: &Panic) {
        self.factory.counters.count_panic();
        error!(batch_id = self.first().batch_header(), error = panic.message(); "{part} panicked");
    }
}

/// The service and the batch, as in the table.
fn ids<S: ScopeId>(submission: &Submission<S>) -> (&str, &str) {
    (submission.scope_id().service_id().as_str(), submission.batch_header())
}

/// The number of the attempt in the store.
fn attempt<S: ScopeId>(submission: &Submission<S>) -> u32 {
    submission.attempt_id().map_or(1, |attempt_id| attempt_id.attempt)
}

/// The answer for a batch of a list of which only earlier ones were sent, if any. That is no failure.
fn not_sent_with_first() -> SubmissionAnswer {
    let reason = "not sent in one request with the batch before it";
    let retry_after = Some(Duration::ZERO);
    SubmissionAnswer { retry_after, ..error_answer(Outcome::Parked, reason) }
}

/// Names the node that a batch could not be sent to.
fn with_node(url: &str, mut answer: SubmissionAnswer) -> SubmissionAnswer {
    let node = redact_url(url);
    if let (Outcome::NotSent, Some(text)) = (answer.outcome, &answer.message)
        && !text.contains(&node)
    {
        answer.message = Some(format!("{node}: {text}"));
    }
    answer
}

/// An answer of the submitter itself, in place of one from the ledger.
pub(crate) fn error_answer(outcome: Outcome, message: impl Into<String>) -> SubmissionAnswer {
    SubmissionAnswer { outcome, status: None, message: Some(message.into()), retry_after: None }
}

/// The ledger may have applied the batch before its deadline: an earlier attempt of it, or one of another client.
fn expired(deadline: Deadline) -> SubmissionAnswer {
    let message = format!("expired: the ledger has passed its deadline, {deadline:#}");
    error_answer(Outcome::Ambiguous, message)
}

#[cfg(test)]
mod tests {
    use std::{
        future::{pending, ready},
        sync::{
            Mutex,
            atomic::{AtomicUsize, Ordering::Relaxed},
        },
    };

    use crate::mocks::{MockSubmissionSender, MockUrlResolver};
    use futures_core::future::BoxFuture;
    use grid_batch_core::batches::LedgerPosition;
    use grid_batch_core::ledger::AttemptId;
    use grid_batch_core::{BatchResult, GlobalScopeId, SystemClock};
    use grid_batch_nodes::{IdentityAnswer, NodePool};

    use super::*;

    const DEADLINE: Deadline = Deadline::Height(10);

    fn at_height(height: u64) -> LedgerPosition {
        LedgerPosition { height: Some(height), height_margin: 3, ..LedgerPosition::default() }
    }

    /// How the check of a batch with a deadline ends; nothing is sent.
    async fn check(
        attempt: u32,
        position: impl Fn() -> BatchResult<LedgerPosition> + Send + 'static,
    ) -> Result<(), SubmissionAnswer> {
        let mut sender = MockSubmissionSender::<GlobalScopeId>::new();
        sender.expect_position().once().returning(move |_| Box::pin(ready(position())));
        let factory = CommandFactory {
            url_resolver: Arc::new(MockUrlResolver::new()),
            sender: Arc::new(sender),
            counters: SubmitterCounters::default(),
            table: WorkTable::default(),
            clock: Arc::new(SystemClock),
        };
        let submission = Submission::new("id".to_owned(), GlobalScopeId, Vec::new())
            .with_attempt_id(AttemptId { attempt, epoch: 1 })
            .with_deadline(Some(DEADLINE));
        Arc::new(factory).command(submission).check("http://ledger", pending()).await
    }

    #[tokio::test]
    async fn batch_is_not_sent_when_too_little_is_left() {
        assert_eq!(check(1, || Ok(at_height(7))).await, Ok(()));
        let answer = check(1, || Ok(at_height(8))).await.unwrap_err();
        assert_eq!(answer.outcome, Outcome::NotSent);
        assert_eq!(
            answer.message.as_deref(),
            Some("http://ledger: too little is left until the deadline of the batch, height 10")
        );
        let down = || Err(BatchError::Unavailable("no answer".to_owned()));
        assert_eq!(check(1, down).await.unwrap_err().outcome, Outcome::NotSent);
    }

    /// The node confirms its ledger this many times.
    #[derive(Debug)]
    struct Confirming {
        left: AtomicUsize,
        reported: Mutex<Vec<Outcome>>,
    }

    impl UrlResolver for Confirming {
        type Id = GlobalScopeId;

        fn url(&self, _: &GlobalScopeId) -> String {
            "http://ledger".to_owned()
        }

        fn confirm<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<(), String>> {
            let left = self.left.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1));
            Box::pin(ready(left.map(drop).map_err(|_| "not confirmed".to_owned())))
        }

        fn report(&self, _: &str, _: &str, outcome: Outcome) {
            self.reported.lock().unwrap().push(outcome);
        }
    }

    /// The error of the check of a batch with a deadline, and what was reported, if the node confirms its ledger this
    /// many times.
    async fn check_confirming(
        times: usize,
        sender: MockSubmissionSender<GlobalScopeId>,
    ) -> (String, Vec<Outcome>) {
        let resolver = Arc::new(Confirming { left: times.into(), reported: Mutex::default() });
        let factory = CommandFactory {
            url_resolver: Arc::<Confirming>::clone(&resolver),
            sender: Arc::new(sender),
            counters: SubmitterCounters::default(),
            table: WorkTable::default(),
            clock: Arc::new(SystemClock),
        };
        let submission = Submission::new("id".to_owned(), GlobalScopeId, Vec::new())
            .with_deadline(Some(DEADLINE));
        let mut command = Arc::new(factory).command(submission);
        let answer = command.check("http://ledger", pending()).await.unwrap_err();
        assert_eq!(answer.outcome, Outcome::NotSent);
        (answer.message.unwrap(), resolver.reported.lock().unwrap().clone())
    }

    #[tokio::test]
    async fn node_that_is_not_confirmed_is_asked_nothing() {
        let (message, reported) = check_confirming(0, MockSubmissionSender::new()).await;
        assert_eq!(message, "http://ledger: not confirmed");
        assert_eq!(reported, [Outcome::Refused], "no connection has failed");
    }

    #[tokio::test]
    async fn node_must_still_be_confirmed_after_it_was_asked() {
        let mut sender = MockSubmissionSender::new();
        sender.expect_position().once().returning(|_| Box::pin(ready(Ok(at_height(1)))));
        let (message, reported) = check_confirming(1, sender).await;
        assert_eq!(message, "http://ledger: not confirmed");
        assert_eq!(reported, [Outcome::Refused], "no connection has failed");
    }

    #[tokio::test]
    async fn failed_question_counts_as_a_failed_connection() {
        let mut sender = MockSubmissionSender::new();
        let down = || Err(BatchError::Unavailable("no answer".to_owned()));
        sender.expect_position().once().returning(move |_| Box::pin(ready(down())));
        let (_, reported) = check_confirming(2, sender).await;
        assert_eq!(reported, [Outcome::NotSent]);
    }

    #[tokio::test(start_paused = true)]
    async fn node_that_confirms_late_is_trusted_in_the_next_attempt() {
        let pool = NodePool::new(["http://ledger"]);
        pool.require_confirmation(Duration::from_secs(1));
        let mut sender = MockSubmissionSender::<GlobalScopeId>::new();
        sender.expect_position().once().returning(|_| Box::pin(ready(Ok(at_height(1)))));
        let factory = Arc::new(CommandFactory {
            url_resolver: pool.resolver(),
            sender: Arc::new(sender),
            counters: SubmitterCounters::default(),
            table: WorkTable::default(),
            clock: Arc::new(SystemClock),
        });
        let submission = Submission::new("id".to_owned(), GlobalScopeId, Vec::new())
            .with_deadline(Some(DEADLINE));
        let mut command = factory.command(submission);
        let (node, asked_at) = (&pool.nodes()[0], pool.monotonic());
        let failures = node.identity().failures();
        let answer = command.check("http://ledger", pending()).await.unwrap_err();
        assert_eq!(answer.outcome, Outcome::NotSent);
        pool.told_identity(node, IdentityAnswer::Confirmed, asked_at, failures);
        assert_eq!(command.check("http://ledger", pending()).await, Ok(()));
    }

    #[tokio::test]
    async fn evidence_decides_about_a_batch_that_expired() {
        for attempt in [1, 2] {
            let answer = check(attempt, || Ok(at_height(11))).await.unwrap_err();
            assert_eq!(answer.outcome, Outcome::Ambiguous);
            let expected = "expired: the ledger has passed its deadline, height 10";
            assert_eq!(answer.message.as_deref(), Some(expected));
        }
    }
}
