//! What `/v1/ledgers` shows. It is read from memory.

use grid_batch_api::{LedgerReport, NodeReport};
use grid_batch_core::{MonotonicTime, Outage, OutageKind, RecordedLedger};
use grid_batch_nodes::{IdentityAnswer, Node};
use grid_batch_support::redact_url;

use super::LedgerCheck;

impl LedgerCheck {
    /// The ledger that the database is bound to, or the one of the settings, and its nodes.
    pub(in crate::server) fn report(&self, recorded: Option<RecordedLedger>) -> LedgerReport {
        let now = self.pool().monotonic();
        let is_recorded = recorded.is_some();
        let configured = || self.configured().clone();
        let identity = recorded.map_or_else(configured, |recorded| recorded.identity);
        LedgerReport {
            kind: identity.kind,
            id: identity.id,
            name: identity.name,
            recorded: is_recorded,
            problem: self.problem(),
            nodes: self.pool().nodes().iter().map(|node| self.node_report(node, now)).collect(),
        }
    }

    fn node_report(&self, node: &Node, now: MonotonicTime) -> NodeReport {
        let outage = self.pool().outage(node);
        let unanswered = outage.as_ref().filter(|it| it.kind == OutageKind::Unanswered);
        let identity = node.identity();
        let identity_problem = match identity.answer() {
            IdentityAnswer::None => Some("no answer yet"),
            answer => answer.problem(),
        };
        NodeReport {
            url: redact_url(node.url()),
            confirmed: identity.is_confirmed(),
            answering: self.pool().works(node),
            unanswered_seconds: unanswered.map(|outage| outage.lasted.as_secs_f64()),
            problem: outage.as_ref().map(problem).or(identity_problem.map(str::to_owned)),
            asked_seconds_ago: identity.time_since_asked(now).map(|ago| ago.as_secs_f64()),
            failed_connections: identity.failures(),
        }
    }
}

/// What the node does not do, for how long, and why.
fn problem(outage: &Outage) -> String {
    format!("{}: {}", outage.problem(), outage.reason)
}
