use std::{fmt, sync::Arc, time::Duration};

use grid_batch_core::ledger::{GroupObserver, Submission};
use grid_batch_core::queue::Admission;
use grid_batch_core::{Clock, ScopeId, SystemClock};
use grid_batch_support::Jobs;
use grid_batch_work::WorkTable;
use thiserror::Error;

use crate::{
    BatchRunnableSubmitter, DelayedServices, RetryQueue, SubmissionSender, SubmitterCounters,
    SubmitterObserver, SubmitterOptions, SubmitterWaker, UrlResolver,
    command::CommandFactory,
    leader::{NextDue, Queue},
    retry_observer::RetryObserver,
    runnable::{Observers, SubmitterParts},
};

/// Builds a submitter.
///
/// A queue, a sender, a URL resolver and at least one observer are required.
pub struct SubmitterBuilder<S: ScopeId> {
    queue: Option<Queue<S>>,
    retry_queue: Option<RetryQueue<S>>,
    sender: Option<Arc<dyn SubmissionSender<Id = S>>>,
    url_resolver: Option<Arc<dyn UrlResolver<Id = S>>>,
    observers: Observers<S>,
    options: SubmitterOptions,
    waker: SubmitterWaker,
    clock: Arc<dyn Clock>,
    admission: Option<Arc<dyn Admission>>,
    delayed: Option<DelayedServices>,
    table: WorkTable,
    next_due: NextDue,
    jobs: Option<Jobs>,
}

/// Why a submitter cannot be built.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SubmitterBuildError {
    /// A required part is missing.
    #[error("the submitter has no {part}")]
    Missing {
        /// The part.
        part: &'static str,
    },
    /// An option is zero.
    #[error("the submitter's {option} is zero; it must be greater")]
    Zero {
        /// The option.
        option: &'static str,
    },
    /// The time limits leave no time to send anything.
    #[error(
        "the submitter's total_limit of {total_limit:?} must be longer than its sending_limit of \
         {sending_limit:?}: no attempt could end in time"
    )]
    Limits {
        /// The time limit of a submission.
        total_limit: Duration,
        /// The time limit of one attempt.
        sending_limit: Duration,
    },
}

impl<S: ScopeId> SubmitterBuilder<S> {
    /// A builder with default options and without any part.
    pub fn new() -> Self {
        Self {
            queue: None,
            retry_queue: None,
            sender: None,
            url_resolver: None,
            observers: Observers { single: None, group: None },
            options: SubmitterOptions::default(),
            waker: SubmitterWaker::new(),
            clock: Arc::new(SystemClock),
            admission: None,
            delayed: None,
            table: WorkTable::default(),
            next_due: Arc::new(|| None),
            jobs: None,
        }
    }

    /// Sets the source of submissions: a queue, or a `Vec`.
    ///
    /// When it returns `None`, it is polled again later. It is called on its own thread and may
    /// block; stopping the submitter waits for the call.
    #[must_use]
    pub fn with_queue<Q>(mut self, queue: Q) -> Self
    where
        Q: IntoIterator<Item = Submission<S>, IntoIter: Send + 'static>,
    {
        self.queue = Some(Box::new(queue.into_iter()));
        self.retry_queue = None;
        self
    }

    /// Sets the source of submissions: a queue that has batches sent again. The group observer gets only outcomes after
    /// which it does not.
    #[must_use]
    pub fn with_retry_queue(mut self, queue: &RetryQueue<S>) -> Self {
        self.queue = Some(Box::new(queue.clone()));
        self.retry_queue = Some(queue.clone());
        self
    }

    /// Sets the adapter that sends batches. It must not block the thread that polls its futures.
    #[must_use]
    pub fn with_sender(mut self, sender: Arc<dyn SubmissionSender<Id = S>>) -> Self {
        self.sender = Some(sender);
        self
    }

    /// Sets the resolver, which is called for each attempt and told its outcome.
    #[must_use]
    pub fn with_url_resolver(mut self, resolver: Arc<dyn UrlResolver<Id = S>>) -> Self {
        self.url_resolver = Some(resolver);
        self
    }

    /// Notifies this observer when a submission starts and when it ends.
    #[must_use]
    pub fn with_observer(mut self, observer: Arc<dyn SubmitterObserver<Id = S>>) -> Self {
        self.observers.single = Some(observer);
        self
    }

    /// Notifies this observer of the outcomes of submissions, in groups.
    #[must_use]
    pub fn with_group_observer(mut self, observer: Arc<dyn GroupObserver<Id = S>>) -> Self {
        self.observers.group = Some(observer);
        self
    }

    /// Sends batches on the runtime of these jobs instead of one of its own.
    #[must_use]
    pub fn with_jobs(mut self, jobs: &Jobs) -> Self {
        self.jobs = Some(jobs.clone());
        self
    }

    /// Sets the options.
    #[must_use]
    pub fn with_options(mut self, options: SubmitterOptions) -> Self {
        self.options = options;
        self
    }

    /// Sets the waker. A queue can then have a clone of it before the submitter is built.
    #[must_use]
    pub fn with_waker(mut self, waker: SubmitterWaker) -> Self {
        self.waker = waker;
        self
    }

    /// Sets the clock that the limit of a submission is measured with. It must be the one of the
    /// queue, if that tells when it took a submission.
    #[must_use]
    pub fn with_clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Tells `admission`, which must be that of the queue, when each submission has ended.
    #[must_use]
    pub fn with_admission(mut self, admission: Arc<dyn Admission>) -> Self {
        self.admission = Some(admission);
        self
    }

    /// Reports the services whose batches are not accepted to `delayed`.
    #[must_use]
    pub fn with_delayed_services(mut self, delayed: DelayedServices) -> Self {
        self.delayed = Some(delayed);
        self
    }

    /// Uses this table, which must be that of the queue: batches that were called back in it are not sent.
    #[must_use]
    pub fn with_table(mut self, table: WorkTable) -> Self {
        self.table = table;
        self
    }

    /// Polls the queue also after the time that `next_due` returns: there may be something then that nothing wakes
    /// the submitter for.
    #[must_use]
    pub fn with_next_due(
        mut self,
        next_due: impl Fn() -> Option<Duration> + Send + Sync + 'static,
    ) -> Self {
        self.next_due = Arc::new(next_due);
        self
    }

    /// Builds the submitter, ready to run.
    pub fn build(mut self) -> Result<BatchRunnableSubmitter<S>, SubmitterBuildError> {
        self.options.check()?;
        let missing = |part| SubmitterBuildError::Missing { part };
        if self.observers.single.is_none() && self.observers.group.is_none() {
            return Err(missing("observer"));
        }
        let counters = SubmitterCounters::default();
        let factory = CommandFactory {
            url_resolver: self.url_resolver.ok_or(missing("URL resolver"))?,
            sender: self.sender.ok_or(missing("sender"))?,
            counters: counters.clone(),
            table: self.table.clone(),
            clock: Arc::clone(&self.clock),
        };
        let delayed = self.delayed.unwrap_or_else(|| {
            // Without a retry queue, it is not known.
            let longest_delay = self.retry_queue.as_ref().map(RetryQueue::longest_delay);
            let (longest_delay, clock) =
                (longest_delay.unwrap_or_default(), Arc::clone(&self.clock));
            DelayedServices::new(self.table, self.options.warn_after, longest_delay, clock)
        });
        if let Some(queue) = self.retry_queue {
            queue.set_waker(self.waker.clone());
            let (own_due, retries) = (self.next_due, queue.clone());
            self.next_due = Arc::new(move || own_due().into_iter().chain(retries.next_due()).min());
            let (own, delayed) = (self.observers.group.take(), delayed.clone());
            self.observers.group = Some(Arc::new(RetryObserver { queue, own, delayed }));
        }
        let queue = self.queue.ok_or(missing("queue"))?;
        let parts = Arc::new(SubmitterParts {
            factory: Arc::new(factory),
            observers: self.observers,
            options: Arc::new(self.options),
            waker: self.waker,
            next_due: self.next_due,
            counters,
            clock: self.clock,
            admission: self.admission,
            delayed,
            jobs: self.jobs,
        });
        Ok(BatchRunnableSubmitter { parts, queue, undelivered: Vec::new() })
    }
}

impl<S: ScopeId> Default for SubmitterBuilder<S> {
    fn default() -> Self {
        Self::new()
    }
}

impl<S: ScopeId> fmt::Debug for SubmitterBuilder<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SubmitterBuilder")
            .field("url_resolver", &self.url_resolver)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}
