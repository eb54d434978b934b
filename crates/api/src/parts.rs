use std::sync::Arc;

use grid_batch_core::Clock;
use grid_batch_core::batches::{BatchFormat, IntakeStore};
use grid_batch_core::events::EventStore;
use grid_batch_core::ledger::Ledger;
use grid_batch_core::operators::OperatorStore;
use grid_batch_core::queries::BatchQueryStore;
use grid_batch_core::tokens::TokenStore;
use grid_batch_support::Jobs;
use grid_batch_withdrawals::{CallRules, WithdrawalRules, WithdrawalStore};

use crate::{
    AccessControl, ApiOptions, AwaitedBatches, CommitProgress, Maintenance, RateLimits,
    TrustedProxies,
    allow_list::AllowLists,
    batches::{ReceivedCallback, ServiceRule},
    gas_admins::GasAdminSource,
    guard::AllowedSites,
    health::HealthSource,
    metrics::MetricsSource,
    operators::RecallFn,
    reads::ReadSources,
    state::{Actors, DatabaseCheck, StoredCallback},
    webhooks::WebhookParts,
};

/// What an interface is built from.
pub(crate) struct ApiParts {
    pub(crate) options: ApiOptions,
    /// `None`: the interface has a runtime of its own.
    pub(crate) jobs: Option<Jobs>,
    pub(crate) intake_store: Arc<dyn IntakeStore>,
    pub(crate) query_store: Arc<dyn BatchQueryStore>,
    /// `None`: no batches are accepted.
    pub(crate) format: Option<Arc<dyn BatchFormat>>,
    pub(crate) allow_lists: AllowLists,
    pub(crate) allowed_sites: AllowedSites,
    /// `None`: everyone who reaches the interface may do everything.
    pub(crate) access: Option<AccessControl>,
    pub(crate) rate_limits: RateLimits,
    pub(crate) proxies: TrustedProxies,
    pub(crate) service_rule: Arc<ServiceRule>,
    pub(crate) ledger: Option<Arc<dyn Ledger>>,
    /// Has other requests of clients of the ledger answered by a node.
    pub(crate) pass_through: Option<Arc<dyn Ledger>>,
    pub(crate) stored: StoredCallback,
    pub(crate) health: Arc<HealthSource>,
    pub(crate) metrics: Arc<MetricsSource>,
    /// Is called with batches before they are stored.
    pub(crate) received: Arc<ReceivedCallback>,
    pub(crate) database_check: Arc<DatabaseCheck>,
    pub(crate) commit_progress: CommitProgress,
    pub(crate) awaited: AwaitedBatches,
    pub(crate) clock: Arc<dyn Clock>,
    /// The webhooks, if the store has them.
    pub(crate) webhooks: Option<WebhookParts>,
    /// Whether the read routes below `/v1` are served.
    pub(crate) serves_reads: bool,
    pub(crate) read_sources: ReadSources,
    /// The feed of events, if the store has one.
    pub(crate) events: Option<Arc<dyn EventStore>>,
    /// What is known of the gas admins, if the ledger has any.
    pub(crate) gas_admins: Option<Arc<GasAdminSource>>,
    /// What carries out what operators ask for, if they may ask here.
    pub(crate) operators: Option<Arc<dyn OperatorStore>>,
    /// Who asks for it.
    pub(crate) actors: Actors,
    /// Carries out decisions about the whole database, if requests may ask for them.
    pub(crate) maintenance: Option<Arc<dyn Maintenance>>,
    /// The access tokens, if requests may change them.
    pub(crate) tokens: Option<Arc<dyn TokenStore>>,
    /// Called after an operator has stopped something.
    pub(crate) recall: Arc<RecallFn>,
    /// If present, the interface accepts withdrawals instead of batches.
    pub(crate) withdrawals: Option<WithdrawalParts>,
    /// If present, an interface for withdrawals also accepts other transactions.
    pub(crate) calls: Option<Arc<dyn CallRules>>,
}

/// What an interface for withdrawals needs.
pub(crate) struct WithdrawalParts {
    pub(crate) store: Arc<dyn WithdrawalStore>,
    pub(crate) rules: Arc<dyn WithdrawalRules>,
}
