//! A node must confirm that it belongs to the ledger of the database. Before that, nothing is sent to it, and what it
//! reports is not used.

use std::{sync::atomic::Ordering::Relaxed, time::Duration};

use grid_batch_core::{BatchError, BatchResult, MonotonicTime};
use grid_batch_support::redact_url;
use tokio::time::timeout;

use crate::{IdentityAnswer, Node, NodePool, StatusUrlResolver};

impl NodePool {
    /// Requires that nodes confirm their ledger from now on. A submission waits at most `limit` for this.
    pub fn require_confirmation(&self, limit: Duration) {
        // A second call changes nothing.
        let _ = self.0.confirmation_limit.set(limit);
    }

    /// Treats all nodes as unconfirmed from now on.
    pub fn close(&self) {
        self.0.closed.store(true, Relaxed);
        self.0.answers.send_replace(());
    }

    /// Whether the node at this URL has confirmed its ledger, and may be used.
    pub fn is_confirmed(&self, url: &str) -> bool {
        !self.is_closed() && self.node(url).is_some_and(Node::is_confirmed)
    }

    /// Records the result of asking the node which ledger it belongs to. `asked_at` and `failures` are the values from
    /// when the question was asked: [`monotonic`](Self::monotonic) and
    /// [`Identity::failures`](crate::Identity::failures).
    pub fn told_identity(
        &self,
        node: &Node,
        answer: IdentityAnswer,
        asked_at: MonotonicTime,
        failures: u64,
    ) {
        let is_back = answer == IdentityAnswer::Confirmed && !node.is_confirmed();
        let must_be_asked_again = {
            let identity = &mut node.lock().identity;
            identity.answered(answer, asked_at, failures);
            identity.is_confirmed() && identity.has_failed_since_asked()
        };
        if must_be_asked_again {
            node.wanted.notify_one();
        }
        self.0.answers.send_replace(());
        if is_back {
            self.node_returned();
        }
    }

    /// Succeeds if the node at this URL confirmed its ledger within the last seconds, or confirms it when asked now.
    /// The error says why nothing may be sent to the node.
    pub async fn confirm(&self, url: &str) -> Result<(), String> {
        let Some(limit) = self.0.confirmation_limit.get() else { return Ok(()) };
        let Some(node) = self.node(url) else {
            return Err("the node is not in the settings".to_owned());
        };
        if !self.is_trusted(node) {
            self.ask_for_identity(node, *limit).await;
        }
        if self.is_closed() {
            return Err("the nodes belong to another ledger than the database".to_owned());
        }
        if self.is_trusted(node) {
            Ok(())
        } else {
            let what = match node.identity().answer() {
                IdentityAnswer::Failed(_) => "the node cannot be used now",
                _ => "the node has not told which ledger it belongs to",
            };
            Err(format!("{what}: {}", node.identity_problem()))
        }
    }

    async fn ask_for_identity(&self, node: &Node, limit: Duration) {
        let mut answers = self.0.answers.subscribe();
        let before = node.identity().checks();
        node.wanted.notify_one();
        let has_failed = || node.identity().checks() > before && !node.is_confirmed();
        let is_answered = |_: &()| self.is_closed() || self.is_trusted(node) || has_failed();
        // Without an answer in time, the node is not trusted.
        let _ = timeout(limit, answers.wait_for(is_answered)).await;
    }

    /// Requires each of these nodes to confirm its ledger again: none of them answered a request about a batch, or the
    /// event stream of one of them ended.
    pub fn require_new_confirmation(&self, urls: &[String]) {
        urls.iter().filter_map(|url| self.node(url)).for_each(Node::connection_failed);
    }

    /// Asks all these nodes again, and returns whether all of them confirm their ledger.
    pub async fn confirm_again(&self, urls: &[String]) -> bool {
        self.require_new_confirmation(urls);
        for url in urls {
            if self.confirm(url).await.is_err() {
                return false;
            }
        }
        true
    }

    /// The nodes to ask about a batch. Answers are expected from them from now on. Fails if nodes must confirm their
    /// ledger and none of these has.
    pub fn nodes_to_ask(&self, service: &str, batch_id: &str) -> BatchResult<Vec<String>> {
        let urls = self.status_urls(service, batch_id);
        let is_required = self.0.confirmation_limit.get().is_some();
        if !is_required || urls.is_empty() || urls.iter().any(|url| self.is_confirmed(url)) {
            self.expect_of(service);
            return Ok(urls);
        }
        let reason = "no node has confirmed that it belongs to the ledger of the database";
        let problems: Option<Vec<String>> = urls.iter().map(|url| self.unusable(url)).collect();
        Err(match problems {
            Some(problems) => {
                BatchError::InvalidAnswer(format!("{reason} ({})", problems.join("; ")))
            }
            None => BatchError::Unavailable(reason.to_owned()),
        })
    }

    /// Why the node is not used, if it has answered, but not as a node of the ledger.
    fn unusable(&self, url: &str) -> Option<String> {
        let node = self.node(url)?;
        match node.identity().answer() {
            IdentityAnswer::Unusable(_) | IdentityAnswer::OtherLedger(_) => {
                Some(node.identity_problem())
            }
            _ => None,
        }
    }

    /// For each node of another ledger, why it is not used.
    pub fn other_ledgers(&self) -> Vec<String> {
        let other = |node: &Node| match node.identity().answer() {
            IdentityAnswer::OtherLedger(reason) => Some(reason.clone()),
            _ => None,
        };
        self.nodes().iter().filter_map(other).collect()
    }

    fn is_closed(&self) -> bool {
        self.0.closed.load(Relaxed)
    }

    fn is_trusted(&self, node: &Node) -> bool {
        !self.is_closed() && node.identity().is_trusted(self.monotonic())
    }
}

impl Node {
    /// Waits until the node should be asked at once which ledger it belongs to.
    pub async fn identity_wanted(&self) {
        self.wanted.notified().await;
    }

    /// Records that a connection failed. Another node may answer at the address from now on, so it is asked again
    /// before anything is sent to it.
    pub(crate) fn connection_failed(&self) {
        let was_confirmed = {
            let identity = &mut self.lock().identity;
            identity.connection_failed();
            identity.is_confirmed()
        };
        // A node that is not confirmed is asked regularly, and again if its answer is older than this failure.
        if was_confirmed {
            self.wanted.notify_one();
        }
    }

    /// Why the node is not used, with its URL.
    pub fn identity_problem(&self) -> String {
        let identity = self.identity();
        let reason = identity.answer().problem().unwrap_or("its confirmation is too old");
        format!("{}: {reason}", redact_url(self.url()))
    }
}
