use std::{
    future::pending,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use futures_util::future::join;
use grid_batch_core::ledger::{Ledger, LedgerConfirmation, LedgerIdentity, Outage, OutageKind};
use grid_batch_core::{BatchError, BatchResult};
use grid_batch_nodes::{Identity, IdentityAnswer, Node};
use grid_batch_support::{BlockingPool, Job, Jobs, redact_url};
use log::{info, warn};
use tokio::{
    select,
    task::JoinSet,
    time::{sleep, timeout},
};

use crate::{LedgerCheck, LedgerMismatchError};

/// Compares a ledger with the one that the database is bound to.
pub type ConfirmFn = dyn Fn(&LedgerIdentity) -> BatchResult<LedgerConfirmation> + Send + Sync;

/// Asks each node at once, and then regularly. `confirm` compares the answers with the ledger of the database.
/// `was_bound` says whether the database was bound to a ledger before.
pub fn start(
    check: LedgerCheck,
    ledger: Arc<dyn Ledger>,
    confirm: Arc<ConfirmFn>,
    was_bound: bool,
    jobs: &Jobs,
) -> Job {
    let blocking = jobs.blocking().clone();
    let watcher = Watcher { check, ledger, confirm, blocking, was_bound };
    jobs.spawn("ledger-check", watcher.run())
}

/// Waits until every node has answered, up to this limit.
pub fn wait_for_answers(check: &LedgerCheck, limit: Duration) {
    const CHECK_INTERVAL: Duration = Duration::from_millis(5);
    let started = Instant::now();
    while !check.is_complete() && started.elapsed() < limit {
        thread::sleep(CHECK_INTERVAL);
    }
}

/// Asks the nodes and compares their answers with the database. Clones share their state.
#[derive(Clone)]
pub(crate) struct Watcher {
    pub(crate) check: LedgerCheck,
    pub(crate) ledger: Arc<dyn Ledger>,
    pub(crate) confirm: Arc<ConfirmFn>,
    pub(crate) blocking: BlockingPool,
    /// Whether the database was bound to its ledger before any node was asked.
    pub(crate) was_bound: bool,
}

impl Watcher {
    /// Never ends, because a job that ends is reported as a problem.
    pub(crate) async fn run(self) {
        let mut tasks = JoinSet::new();
        for index in 0..self.check.pool().nodes().len() {
            let watcher = self.clone();
            tasks.spawn(async move {
                let node = &watcher.check.pool().nodes()[index];
                join(watcher.watch_node(node), watcher.watch_outages(node)).await;
            });
        }
        tasks.spawn(async move { self.watch_database().await });
        while tasks.join_next().await.is_some() {}
        pending().await
    }

    async fn watch_node(&self, node: &Node) {
        while self.check.mismatch().is_none() {
            self.ask(node).await;
            select! {
                () = sleep(node.identity().pause()) => {}
                () = node.identity_wanted() => {}
            }
        }
    }

    /// Asks a node whether it answers, when there is a reason to, and logs when it does not.
    async fn watch_outages(&self, node: &Node) {
        const INTERVAL: Duration = Duration::from_millis(250);
        /// A node that is only busy answers within this time.
        const ANSWER_LIMIT: Duration = Duration::from_secs(2);
        let (pool, mut asked_at, mut is_out) = (self.check.pool(), None, false);
        while self.check.mismatch().is_none() {
            sleep(INTERVAL).await;
            if pool.should_ask(node, asked_at) {
                let now = pool.monotonic();
                asked_at = Some(now);
                if timeout(ANSWER_LIMIT, self.ledger.probe(node.url())).await.is_err() {
                    let reason = format!("no answer within {ANSWER_LIMIT:?}");
                    pool.unanswered(node.name(), now, &reason);
                }
            }
            is_out = self.log_outage(node, is_out);
        }
    }

    /// Logs when a node stops answering or reporting its ledger, and when it works again.
    fn log_outage(&self, node: &Node, was_out: bool) -> bool {
        let (outage, name) = (self.check.pool().outage(node), node.name());
        match (&outage, was_out) {
            (Some(Outage { kind: OutageKind::Unanswered, reason, .. }), false) => {
                warn!(node = name, reason = reason.as_str();
                    "the node does not answer; batches that depend on it wait");
            }
            (Some(Outage { kind: OutageKind::Unidentified, reason, .. }), false) => {
                warn!(node = name, reason = reason.as_str();
                    "the node does not report which ledger it belongs to; batches that depend on it wait");
            }
            (None, true) => info!(node = name; "the node works again"),
            _ => {}
        }
        outage.is_some()
    }

    /// Compares the confirmed ledger with the database regularly: the database may have been bound to
    /// another ledger while this instance was paused.
    async fn watch_database(&self) {
        while self.check.mismatch().is_none() {
            sleep(Identity::CONFIRMED_INTERVAL).await;
            let Some(confirmed) = self.check.confirmed() else { continue };
            if let Ok(LedgerConfirmation::Other(recorded)) = self.compare(confirmed.clone()).await {
                let (configured, recorded) = (Box::new(confirmed.clone()), Box::new(recorded));
                self.check.found_mismatch(LedgerMismatchError::Settings { configured, recorded });
            }
        }
    }

    /// Asks a node which ledger it belongs to.
    async fn ask(&self, node: &Node) {
        let pool = self.check.pool();
        let (asked_at, before) = (pool.monotonic(), node.identity());
        let (answer, mismatch) = match self.ledger.identity(node.url()).await {
            Ok(id) => self.compare_told(node, id).await,
            Err(error @ BatchError::Unavailable(_)) => {
                (IdentityAnswer::Failed(error.to_string()), None)
            }
            Err(error) => (IdentityAnswer::Unusable(error.to_string()), None),
        };
        log_change(node, &before, &answer);
        pool.told_identity(node, answer, asked_at, before.failures());
        let are_all_others = || pool.other_ledgers().len() == pool.nodes().len();
        if let Some(mismatch) = mismatch.filter(|_| are_all_others()) {
            self.check.found_mismatch(mismatch);
        }
    }

    /// Compares the ledger that a node has reported with those of the settings and of the database.
    async fn compare_told(
        &self,
        node: &Node,
        id: String,
    ) -> (IdentityAnswer, Option<LedgerMismatchError>) {
        let configured = self.check.configured();
        let ledger = LedgerIdentity { id, ..configured.clone() };
        if self.check.confirmed() == Some(&ledger) {
            return (IdentityAnswer::Confirmed, None);
        }
        if !configured.id.is_empty() && !configured.agrees_with(&ledger) {
            return other_ledger(LedgerMismatchError::NodeOfSettings {
                node: redact_url(node.url()),
                actual: Box::new(ledger),
                configured: Box::new(configured.clone()),
            });
        }
        match self.compare(ledger.clone()).await {
            Ok(LedgerConfirmation::Confirmed) => {
                self.check.confirm(ledger);
                (IdentityAnswer::Confirmed, None)
            }
            Ok(LedgerConfirmation::Other(recorded)) => {
                let mismatch = LedgerMismatchError::Node {
                    node: redact_url(node.url()),
                    actual: Box::new(ledger),
                    recorded: Box::new(recorded),
                };
                // The answer of another node has just bound the database. It is not known which node is right.
                if !self.was_bound && !node.identity().has_confirmed() {
                    self.check.found_mismatch(mismatch.clone());
                }
                other_ledger(mismatch)
            }
            Err(error) => (IdentityAnswer::Failed(error.to_string()), None),
        }
    }

    async fn compare(&self, ledger: LedgerIdentity) -> BatchResult<LedgerConfirmation> {
        let confirm = Arc::clone(&self.confirm);
        self.blocking.ask(move || confirm(&ledger)).await
    }
}

fn other_ledger(mismatch: LedgerMismatchError) -> (IdentityAnswer, Option<LedgerMismatchError>) {
    (IdentityAnswer::OtherLedger(mismatch.to_string()), Some(mismatch))
}

/// Logs the first answer of a node, and each answer that differs from the one before.
fn log_change(node: &Node, before: &Identity, answer: &IdentityAnswer) {
    let url = redact_url(node.url());
    let is_other = |answer: &IdentityAnswer| matches!(answer, IdentityAnswer::OtherLedger(_));
    let was_confirmed = before.is_confirmed();
    if *answer == IdentityAnswer::Confirmed {
        if !was_confirmed {
            info!(node = url.as_str(); "the node belongs to the ledger of the database");
        }
    } else if let Some(error) = answer.problem()
        && (was_confirmed || before.checks() == 0 || is_other(answer) && !is_other(before.answer()))
    {
        warn!(node = url.as_str(), error = error;
            "the node cannot be used until it has told which ledger it belongs to");
    }
}
