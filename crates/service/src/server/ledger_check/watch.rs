use std::{
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use futures_util::future::join;
use grid_batch_core::{
    BatchError, BatchResult, InternalError, Ledger, LedgerConfirmation, LedgerIdentity,
    LedgerRegistry, NodeOutage,
};
use grid_batch_support::{RuntimeThread, Shutdown, redact_url, shut_down_runtime};
use log::{info, warn};
use tokio::{
    runtime::{Builder, Runtime},
    select, spawn,
    task::spawn_blocking,
    time::{sleep, timeout},
};

use super::{
    LedgerMismatchError,
    check::{LedgerCheck, Node},
    node_state::{NodeAnswer, NodeState},
};

/// The thread that asks the nodes. Dropping it ends the thread.
#[derive(Debug)]
pub(in crate::server) struct RunningLedgerCheck {
    check: LedgerCheck,
    shutdown: Shutdown,
    thread: Option<RuntimeThread<()>>,
}

impl RunningLedgerCheck {
    /// Asks each node at once, and then regularly. The answers are compared with the ledger of
    /// this database, which `was_bound` to it before.
    pub(in crate::server) fn start(
        check: LedgerCheck,
        ledger: Arc<dyn Ledger>,
        database: Arc<dyn LedgerRegistry>,
        was_bound: bool,
    ) -> Result<Self, InternalError> {
        let shutdown = Shutdown::new();
        let requested = shutdown.clone();
        let watcher = Watcher { check: check.clone(), ledger, database, was_bound };
        let runtime = || Builder::new_current_thread().enable_all().build();
        let thread = RuntimeThread::start("ledger-check", runtime, move |runtime: Runtime| {
            runtime.block_on(watcher.run(&requested));
            shut_down_runtime(runtime);
        })?;
        Ok(Self { check, shutdown, thread: Some(thread) })
    }

    /// Waits until every node has answered, up to this limit.
    pub(in crate::server) fn wait_for_answers(&self, limit: Duration) {
        const CHECK_INTERVAL: Duration = Duration::from_millis(5);
        let started = Instant::now();
        while !self.check.is_complete() && started.elapsed() < limit {
            thread::sleep(CHECK_INTERVAL);
        }
    }

    pub(in crate::server) fn check(&self) -> &LedgerCheck {
        &self.check
    }
}

impl Drop for RunningLedgerCheck {
    fn drop(&mut self) {
        self.shutdown.request();
        if let Some(thread) = self.thread.take() {
            // The panic hook has printed a panic already.
            let _ = thread.join();
        }
    }
}

/// Asks the nodes and compares their answers with the database. Clones share their state.
#[derive(Clone)]
pub(super) struct Watcher {
    pub(super) check: LedgerCheck,
    pub(super) ledger: Arc<dyn Ledger>,
    pub(super) database: Arc<dyn LedgerRegistry>,
    /// Whether the database was bound to its ledger before any node was asked.
    pub(super) was_bound: bool,
}

impl Watcher {
    pub(super) async fn run(&self, shutdown: &Shutdown) {
        for index in 0..self.check.0.nodes.len() {
            let watcher = self.clone();
            spawn(async move {
                let node = &watcher.check.0.nodes[index];
                join(watcher.watch_node(node), watcher.watch_outages(node)).await
            });
        }
        let watcher = self.clone();
        spawn(async move { watcher.watch_database().await });
        shutdown.requested().await;
    }

    async fn watch_node(&self, node: &Node) {
        while self.check.mismatch().is_none() {
            self.ask(node).await;
            let pause = node.lock().pause();
            select! {
                () = sleep(pause) => {}
                () = node.wanted.notified() => {}
            }
        }
    }

    /// Asks a node whether it answers when that is of interest, and logs when it does not.
    async fn watch_outages(&self, node: &Node) {
        const INTERVAL: Duration = Duration::from_millis(250);
        /// A node that is only busy answers within this time.
        const ANSWER_LIMIT: Duration = Duration::from_secs(2);
        let (options, mut asked_at, mut is_out) = (&self.check.0.options, None, false);
        while self.check.mismatch().is_none() {
            sleep(INTERVAL).await;
            if options.outages.should_ask(&node.name, asked_at) {
                let now = options.clock.monotonic();
                asked_at = Some(now);
                if timeout(ANSWER_LIMIT, self.ledger.probe(&node.url)).await.is_err() {
                    let reason = format!("no answer within {ANSWER_LIMIT:?}");
                    options.outages.unanswered(&node.name, now, &reason);
                }
            }
            is_out = self.log_outage(node, is_out);
        }
    }

    /// Logs when a node does not answer any more, and when it answers again.
    fn log_outage(&self, node: &Node, was_out: bool) -> bool {
        let (outage, name) = (self.check.outage(node), node.name.as_str());
        match (&outage, was_out) {
            (Some(NodeOutage { reason, .. }), false) => {
                warn!(node = name, reason = reason.as_str();
                    "the node does not answer; batches that depend on it wait");
            }
            (None, true) => {
                info!(node = name; "the node answers again");
                self.check.0.waiting.poll();
            }
            _ => {}
        }
        outage.is_some()
    }

    /// Compares the confirmed ledger with the database regularly: the database may have been bound to
    /// another ledger while this instance was paused.
    async fn watch_database(&self) {
        while self.check.mismatch().is_none() {
            sleep(NodeState::CONFIRMED_INTERVAL).await;
            let Some(confirmed) = self.check.0.confirmed.get() else { continue };
            if let Ok(LedgerConfirmation::Other(recorded)) = self.compare(confirmed.clone()).await {
                let (configured, recorded) = (Box::new(confirmed.clone()), Box::new(recorded));
                self.check.found_mismatch(LedgerMismatchError::Settings { configured, recorded });
            }
        }
    }

    /// Asks a node which ledger it belongs to.
    async fn ask(&self, node: &Node) {
        let asked_at = self.check.0.options.clock.monotonic();
        let failures_before = node.lock().failures();
        let answer = match self.ledger.identity(&node.url).await {
            Ok(id) => self.compare_told(node, id).await,
            Err(error @ BatchError::Unavailable(_)) => NodeAnswer::Failed(error.to_string()),
            Err(error) => NodeAnswer::Unusable(error.to_string()),
        };
        self.log_change(node, &answer);
        let is_back = answer == NodeAnswer::Confirmed && !node.lock().is_confirmed();
        node.lock().answered(answer, asked_at, failures_before);
        self.check.check_all_others();
        self.check.0.answers.send_replace(());
        if is_back {
            self.check.0.waiting.poll();
        }
    }

    /// Compares what a node has told with the ledger of the settings and of the database.
    async fn compare_told(&self, node: &Node, id: String) -> NodeAnswer {
        let configured = &self.check.0.options.configured;
        let ledger = LedgerIdentity { id, ..configured.clone() };
        if self.check.0.confirmed.get() == Some(&ledger) {
            return NodeAnswer::Confirmed;
        }
        if !configured.id.is_empty() && !configured.agrees_with(&ledger) {
            return NodeAnswer::OtherLedger(Box::new(LedgerMismatchError::NodeOfSettings {
                node: redact_url(&node.url),
                actual: Box::new(ledger),
                configured: Box::new(configured.clone()),
            }));
        }
        match self.compare(ledger.clone()).await {
            Ok(LedgerConfirmation::Confirmed) => {
                self.check.0.confirmed.get_or_init(|| ledger);
                NodeAnswer::Confirmed
            }
            Ok(LedgerConfirmation::Other(recorded)) => {
                let mismatch = LedgerMismatchError::Node {
                    node: redact_url(&node.url),
                    actual: Box::new(ledger),
                    recorded: Box::new(recorded),
                };
                // The database was bound just now by the answer of another node. Nothing tells which node is right.
                if !self.was_bound && !node.lock().has_confirmed() {
                    self.check.found_mismatch(mismatch.clone());
                }
                NodeAnswer::OtherLedger(Box::new(mismatch))
            }
            Err(error) => NodeAnswer::Failed(error.to_string()),
        }
    }

    async fn compare(&self, ledger: LedgerIdentity) -> BatchResult<LedgerConfirmation> {
        let database = Arc::clone(&self.database);
        let compared = spawn_blocking(move || database.confirm_ledger(&ledger)).await;
        compared.unwrap_or_else(|error| Err(BatchError::InternalError(error.to_string())))
    }

    /// Logs the first answer of a node, and each answer that differs from the one before.
    fn log_change(&self, node: &Node, answer: &NodeAnswer) {
        let url = redact_url(&node.url);
        let is_confirmed = node.lock().is_confirmed();
        let was_asked = node.lock().checks() > 0;
        let was_other = node.lock().other_ledger().is_some();
        let is_other = matches!(answer, NodeAnswer::OtherLedger(_));
        if *answer == NodeAnswer::Confirmed {
            if !is_confirmed {
                info!(node = url.as_str(); "the node has confirmed its ledger");
            }
        } else if let Some(error) = answer.problem()
            && (is_confirmed || !was_asked || is_other && !was_other)
        {
            warn!(node = url.as_str(), error = error.as_str();
                "the node has not confirmed its ledger; it is not used until it has");
        }
    }
}
