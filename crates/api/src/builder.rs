use std::{fmt, net::TcpListener, sync::Arc};

use grid_batch_core::{InternalError, ServiceId};
use grid_batch_store::Store;
use grid_batch_withdrawals::WithdrawalRules;
use thiserror::Error;

use crate::{ApiOptions, RunningApi, running, stored::Stored};

pub(crate) type ServiceRule = dyn Fn(&ServiceId) -> Result<(), String> + Send + Sync;
pub(crate) type Health = dyn Fn() -> Vec<String> + Send + Sync;

/// Puts an interface together.
///
/// Without more it takes batches, serves every service, tells nobody what it stored, and is always
/// healthy.
pub struct ApiBuilder {
    parts: Parts,
}

/// What an interface is made of.
#[derive(Clone)]
pub(crate) struct Parts {
    pub(crate) store: Store,
    pub(crate) options: ApiOptions,
    pub(crate) service_rule: Arc<ServiceRule>,
    pub(crate) stored: Arc<Stored>,
    pub(crate) health: Arc<Health>,
    /// Where there are any, the ledger is a chain, and takes withdrawals instead of batches.
    pub(crate) rules: Option<Arc<dyn WithdrawalRules>>,
}

/// Why an interface cannot be built.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ApiBuildError {
    /// An option is zero that must not be.
    #[error("the interface's {option} is zero; it must be more")]
    Zero {
        /// Which.
        option: &'static str,
    },
    /// The longest body that is allowed would never fit.
    #[error(
        "the interface's memory_limit of {memory_limit} bytes is less than its body_limit of \
         {body_limit}; the longest body would never be taken"
    )]
    Memory {
        /// The limit of all bodies together.
        memory_limit: usize,
        /// The limit of one.
        body_limit: usize,
    },
}

impl ApiBuilder {
    /// An interface to this store, with the default options.
    pub fn new(store: Store) -> Self {
        let parts = Parts {
            store,
            options: ApiOptions::default(),
            service_rule: Arc::new(|_| Ok(())),
            stored: Arc::new(|_| ()),
            health: Arc::new(Vec::new),
            rules: None,
        };
        Self { parts }
    }

    /// Works by these options.
    #[must_use]
    pub fn with_options(mut self, options: ApiOptions) -> Self {
        self.parts.options = options.capped();
        self
    }

    /// Takes batches only for services that this allows; its error is the rule, for the sender to
    /// read. It must not block.
    #[must_use]
    pub fn with_service_rule(
        mut self,
        rule: impl Fn(&ServiceId) -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        self.parts.service_rule = Arc::new(rule);
        self
    }

    /// Tells this, after each commit and before its senders are answered, which services have new
    /// batches; a withdrawal is one too. It holds up the next commit.
    #[must_use]
    pub fn with_stored(mut self, stored: impl Fn(&[ServiceId]) + Send + Sync + 'static) -> Self {
        self.parts.stored = Arc::new(stored);
        self
    }

    /// Takes withdrawals from the pools of a chain instead of batches, by these rules. They must not
    /// block.
    #[must_use]
    pub fn with_withdrawals(mut self, rules: Arc<dyn WithdrawalRules>) -> Self {
        self.parts.rules = Some(rules);
        self
    }

    /// Asks this whether the service is healthy: it gives the reasons why not. It may block.
    #[must_use]
    pub fn with_health(mut self, health: impl Fn() -> Vec<String> + Send + Sync + 'static) -> Self {
        self.parts.health = Arc::new(health);
        self
    }

    /// The interface, ready to serve.
    pub fn build(self) -> Result<Api, ApiBuildError> {
        self.parts.options.check()?;
        Ok(Api { parts: self.parts })
    }
}

impl fmt::Debug for ApiBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.parts.debug("ApiBuilder", f)
    }
}

/// An interface that is put together and does not serve yet.
pub struct Api {
    parts: Parts,
}

impl Api {
    /// Serves whoever connects, on threads of its own, until it is told to end.
    pub fn serve(self, listener: TcpListener) -> Result<RunningApi, InternalError> {
        running::start(self.parts, listener)
    }
}

impl fmt::Debug for Api {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.parts.debug("Api", f)
    }
}

impl Parts {
    fn debug(&self, name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct(name)
            .field("store", &self.store)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}
