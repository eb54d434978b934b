use std::{fmt, sync::Arc, time::Duration};

use grid_batch_core::{
    GroupObserver, ScopeId, Submission, SubmissionSender, SubmitterObserver, UrlResolver,
};
use thiserror::Error;

use crate::{
    BatchRunnableSubmitter, NodeUrlResolver, SubmitterCounters, SubmitterOptions, SubmitterWaker,
    UrlHealth,
    command::CommandFactory,
    leader::Queue,
    runnable::{Observers, Parts},
};

/// Puts a submitter together.
///
/// It needs a queue, a sender, a URL resolver, and an observer of either kind, or both.
pub struct SubmitterBuilder<S: ScopeId> {
    queue: Option<Queue<S>>,
    sender: Option<Arc<dyn SubmissionSender<Id = S>>>,
    url_resolver: Option<Arc<dyn UrlResolver<Id = S>>>,
    url_health: Option<Arc<dyn UrlHealth>>,
    observers: Observers<S>,
    options: SubmitterOptions,
    waker: SubmitterWaker,
}

/// Why a submitter cannot be built.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SubmitterBuildError {
    /// A part is missing.
    #[error("the submitter has no {part}")]
    Missing {
        /// Which.
        part: &'static str,
    },
    /// An option is zero that must not be.
    #[error("the submitter's {option} is zero; it must be more")]
    Zero {
        /// Which.
        option: &'static str,
    },
    /// There would be no time to send anything.
    #[error(
        "the submitter's total_limit of {total_limit:?} is not longer than its sending_limit of \
         {sending_limit:?}; a sending could not end within it"
    )]
    Limits {
        /// The limit of a whole submission.
        total_limit: Duration,
        /// The limit of one sending.
        sending_limit: Duration,
    },
}

impl<S: ScopeId> SubmitterBuilder<S> {
    /// A builder that has nothing but the default options.
    pub fn new() -> Self {
        Self {
            queue: None,
            sender: None,
            url_resolver: None,
            url_health: None,
            observers: Observers { single: None, group: None },
            options: SubmitterOptions::default(),
            waker: SubmitterWaker::new(),
        }
    }

    /// Takes submissions from here: a queue, or a `Vec`.
    ///
    /// Whenever it gives `None` it is asked again later. It is called on a thread of its own and may
    /// block; a stop waits for it.
    #[must_use]
    pub fn with_queue<Q>(mut self, queue: Q) -> Self
    where
        Q: IntoIterator<Item = Submission<S>, IntoIter: Send + 'static>,
    {
        self.queue = Some(Box::new(queue.into_iter()));
        self
    }

    /// Sends batches with this. It must not block the thread it is polled on.
    #[must_use]
    pub fn with_sender(mut self, sender: Arc<dyn SubmissionSender<Id = S>>) -> Self {
        self.sender = Some(sender);
        self
    }

    /// Asks this where to send a batch, at each attempt.
    #[must_use]
    pub fn with_url_resolver(mut self, resolver: Arc<dyn UrlResolver<Id = S>>) -> Self {
        self.url_resolver = Some(resolver);
        self
    }

    /// Tells this how each attempt at an address went.
    #[must_use]
    pub fn with_url_health(mut self, health: Arc<dyn UrlHealth>) -> Self {
        self.url_health = Some(health);
        self
    }

    /// Sends to the nodes of one ledger, and tells the resolver how each attempt went.
    #[must_use]
    pub fn with_nodes(self, nodes: Arc<NodeUrlResolver<S>>) -> Self {
        self.with_url_health(Arc::<NodeUrlResolver<S>>::clone(&nodes)).with_url_resolver(nodes)
    }

    /// Tells this of the beginning and the end of each submission.
    #[must_use]
    pub fn with_observer(mut self, observer: Arc<dyn SubmitterObserver<Id = S>>) -> Self {
        self.observers.single = Some(observer);
        self
    }

    /// Tells this of the ends of submissions, in groups.
    #[must_use]
    pub fn with_group_observer(mut self, observer: Arc<dyn GroupObserver<Id = S>>) -> Self {
        self.observers.group = Some(observer);
        self
    }

    /// Works by these options.
    #[must_use]
    pub fn with_options(mut self, options: SubmitterOptions) -> Self {
        self.options = options;
        self
    }

    /// Is woken by this, so that a queue can have it before the submitter is built.
    #[must_use]
    pub fn with_waker(mut self, waker: SubmitterWaker) -> Self {
        self.waker = waker;
        self
    }

    /// The submitter, ready to run.
    pub fn build(self) -> Result<BatchRunnableSubmitter<S>, SubmitterBuildError> {
        self.options.check()?;
        let missing = |part| SubmitterBuildError::Missing { part };
        if self.observers.single.is_none() && self.observers.group.is_none() {
            return Err(missing("observer"));
        }
        let counters = SubmitterCounters::default();
        let factory = CommandFactory {
            url_resolver: self.url_resolver.ok_or(missing("URL resolver"))?,
            url_health: self.url_health,
            sender: self.sender.ok_or(missing("sender"))?,
            counters: counters.clone(),
        };
        Ok(BatchRunnableSubmitter(Parts {
            queue: self.queue.ok_or(missing("queue"))?,
            factory: Arc::new(factory),
            observers: self.observers,
            options: Arc::new(self.options),
            waker: self.waker,
            counters,
            undelivered: Vec::new(),
        }))
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
