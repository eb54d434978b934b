//! Services that the ledger's nodes have reported to have or not to have.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, OnceLock},
    time::Duration,
};

use grid_batch_core::ledger::CommitHistory;
use grid_batch_core::{MonotonicTime, ServiceId};
use grid_batch_http::{HttpResponse, origin};
use grid_batch_support::{BoundedMap, lock};
use log::{debug, info, warn};
use tokio::sync::Semaphore;

use crate::message::error_message;

/// The nodes that have reported that they do not have a service.
pub(crate) struct UnknownServices {
    answers: Mutex<Answers>,
    /// Knows which services had batches before this process started.
    history: OnceLock<Arc<dyn CommitHistory>>,
    /// Limits the questions about unknown services.
    pub(crate) first_questions: Semaphore,
}

/// Clients can invent any number of services that are denied, so these have a separate map.
struct Answers {
    /// The services that a node has, or once had.
    known: BoundedMap<ServiceId, ()>,
    denied: BoundedMap<ServiceId, Denials>,
    /// When a node last did not answer a first question about a service in time, so that clients waited.
    unanswered_at: Option<MonotonicTime>,
}

#[derive(Default)]
struct Denials {
    /// The URLs of the nodes that deny the service, and when they first and last did so.
    by: HashMap<String, (MonotonicTime, MonotonicTime)>,
    /// When the nodes were last asked only because of this entry.
    asked_at: Option<MonotonicTime>,
}

/// Which node denies a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DeniedBy {
    /// One to which the batches of the service are sent.
    Node,
    /// The other node of its circuit, where the service has this id.
    Peer,
}

impl UnknownServices {
    const KNOWN: usize = 100_000;
    /// Limit on denied services. If there are more, the oldest are forgotten and the nodes are asked about them again.
    const DENIED: usize = 10_000;
    /// Nodes are asked again after this time, because a circuit may have been created.
    const ASKED_AGAIN_AFTER: Duration = Duration::from_secs(2);
    /// How long a client waits for the answer to the first question about a service.
    pub(crate) const FIRST_ANSWER_LIMIT: Duration = Duration::from_secs(1);
    /// For this long after a question that was not answered in time, clients do not wait for the answers to other
    /// questions.
    const NO_WAIT_FOR: Duration = Duration::from_secs(10);
    const FIRST_QUESTIONS: usize = 8;
    /// A service that a node once had counts as known for this time, because a starting node answers 404 for services
    /// that it has not started yet.
    const STARTED_WITHIN: Duration = Duration::from_mins(1);

    pub(crate) fn new() -> Self {
        Self {
            answers: Mutex::new(Answers {
                known: BoundedMap::new(Self::KNOWN),
                denied: BoundedMap::new(Self::DENIED),
                unanswered_at: None,
            }),
            history: OnceLock::new(),
            first_questions: Semaphore::new(Self::FIRST_QUESTIONS),
        }
    }

    /// Sets the source of which services had batches before this process started.
    pub(crate) fn set_history(&self, history: Arc<dyn CommitHistory>) {
        // It can be set only once.
        let _ = self.history.set(history);
    }

    /// Remembers what the response of a node shows about this service.
    pub(crate) fn record(
        &self,
        service: &ServiceId,
        node: &str,
        denied_by: DeniedBy,
        response: &HttpResponse,
        now: MonotonicTime,
    ) {
        if denies_service(response) {
            self.deny(service, node, denied_by, now);
        } else if matches!(response.status, 200 | 202) {
            lock(&self.answers).confirm(service);
        }
    }

    fn deny(&self, service: &ServiceId, node: &str, by: DeniedBy, now: MonotonicTime) {
        let had_batches = self.had_batches(service);
        let mut answers = lock(&self.answers);
        if had_batches {
            answers.known.set(service, ());
        }
        let was_known = answers.known.contains(service);
        let denials = answers.denied.get_or_insert_with(service, Denials::default);
        let is_first = denials.by.is_empty();
        denials.by.entry(node.to_owned()).or_insert((now, now)).1 = now;
        drop(answers);
        if is_first {
            warn_of_denial(service, &origin(node), by, was_known);
        }
    }

    /// Whether the service had batches before this process started. The store is asked once, at the first denial.
    fn had_batches(&self, service: &ServiceId) -> bool {
        if lock(&self.answers).is_answered(service) {
            return false;
        }
        let Some(history) = self.history.get() else { return false };
        history.has_committed(service).unwrap_or_else(|error| {
            debug!(service:%, error:%; "cannot read whether the service had batches before");
            false
        })
    }

    /// Whether a node has the service, or had it before.
    pub(crate) fn was_known(&self, service: &ServiceId) -> bool {
        lock(&self.answers).known.contains(service)
    }

    /// Whether all of these nodes have reported that they do not have the service.
    pub(crate) fn contains(
        &self,
        service: &ServiceId,
        nodes: &[String],
        now: MonotonicTime,
    ) -> bool {
        let answers = lock(&self.answers);
        let minimum =
            if answers.known.contains(service) { Self::STARTED_WITHIN } else { Duration::ZERO };
        let Some(Denials { by, .. }) = answers.denied.get(service) else { return false };
        let denies = |node| by.get(node).is_some_and(|(first, _)| now.since(*first) >= minimum);
        !nodes.is_empty() && nodes.iter().all(denies)
    }

    /// Whether the nodes should be asked again. Only one caller gets `true`.
    pub(crate) fn should_ask(
        &self,
        service: &ServiceId,
        nodes: &[String],
        now: MonotonicTime,
    ) -> bool {
        let is_old = |at: MonotonicTime| now.since(at) >= Self::ASKED_AGAIN_AFTER;
        let mut answers = lock(&self.answers);
        let Some(Denials { by, asked_at }) = answers.denied.get_mut(service) else { return false };
        let has_old_answer =
            nodes.iter().any(|node| by.get(node).is_some_and(|(_, last)| is_old(*last)));
        let should_ask = has_old_answer && asked_at.is_none_or(is_old);
        if should_ask {
            *asked_at = Some(now);
        }
        should_ask
    }

    /// Whether nothing is known about the service and the nodes should be asked before a batch is stored.
    pub(crate) fn should_ask_first(&self, service: &ServiceId, now: MonotonicTime) -> bool {
        let answers = lock(&self.answers);
        if answers.unanswered_at.is_some_and(|at| now.since(at) < Self::NO_WAIT_FOR) {
            return false;
        }
        let asked_at = answers.denied.get(service).and_then(|denials| denials.asked_at);
        let is_recent = |at: MonotonicTime| now.since(at) < Self::ASKED_AGAIN_AFTER;
        !answers.is_answered(service) && !asked_at.is_some_and(is_recent)
    }

    /// Records that the first question about a service has ended.
    pub(crate) fn asked_first(&self, service: &ServiceId, was_quick: bool, now: MonotonicTime) {
        let mut answers = lock(&self.answers);
        if answers.known.contains(service) {
            return;
        }
        answers.denied.get_or_insert_with(service, Denials::default).asked_at = Some(now);
        if !answers.is_answered(service) && !was_quick {
            answers.unanswered_at = Some(now);
        }
    }
}

impl Answers {
    fn is_answered(&self, service: &ServiceId) -> bool {
        let is_denied = |denials: &Denials| !denials.by.is_empty();
        self.known.contains(service) || self.denied.get(service).is_some_and(is_denied)
    }

    fn confirm(&mut self, service: &ServiceId) {
        self.known.set(service, ());
        let Some(denials) = self.denied.get_mut(service) else { return };
        if !denials.by.is_empty() {
            info!(service:%; "a node has this service now");
        }
        *denials = Denials::default();
    }
}

fn warn_of_denial(service: &ServiceId, node: &str, by: DeniedBy, was_known: bool) {
    match (by, was_known) {
        (_, true) => warn!(service:%, node;
            "the node has not started this service, which it had before: its batches wait until it has"),
        (DeniedBy::Node, false) => warn!(service:%, node;
            "the node does not have this service: its batches wait until it has; correct the id, or \
             create the circuit"),
        (DeniedBy::Peer, false) => warn!(service:%, node;
            "the node does not have this service of services.*.peers, so it proves nothing about batches; \
             correct the id: each node of a circuit has an id of its own"),
    }
}

/// Whether a node reports that it does not have the service. A proxy without the path also answers 404.
pub(crate) fn denies_service(response: &HttpResponse) -> bool {
    response.status == 404
        && error_message(response).is_some_and(|message| {
            message.starts_with("scabbard service ") && message.ends_with("not found")
        })
}

#[cfg(test)]
mod tests {
    use grid_batch_core::ledger::CommittedBefore;
    use grid_batch_core::{BatchResult, ItemId};

    use super::*;

    const NODE: &str = "http://a";
    const OTHER: &str = "http://b";

    fn response(status: u16, body: &str) -> HttpResponse {
        HttpResponse { status, retry_after: None, body: Ok(body.into()) }
    }

    fn denial() -> HttpResponse {
        response(404, r#"{"message":"scabbard service gsZZ on circuit abcDE-F0123 not found"}"#)
    }

    fn at(seconds: u64) -> MonotonicTime {
        MonotonicTime::default().plus(Duration::from_secs(seconds))
    }

    fn service() -> ServiceId {
        "abcDE-F0123::gsZZ".parse().unwrap()
    }

    /// Every service had batches.
    struct AllCommitted;

    impl CommitHistory for AllCommitted {
        fn committed_before(&self, _: &ServiceId, _: &ItemId) -> BatchResult<CommittedBefore> {
            Ok(CommittedBefore::default())
        }

        fn has_committed(&self, _: &ServiceId) -> BatchResult<bool> {
            Ok(true)
        }
    }

    #[test]
    fn service_is_unknown_when_all_its_nodes_deny_it() {
        let services = UnknownServices::new();
        let nodes = ["http://a", "http://b"].map(ToOwned::to_owned);
        let contains = |nodes: &[String]| services.contains(&service(), nodes, at(2));
        services.record(&service(), NODE, DeniedBy::Node, &denial(), at(1));
        assert!(!contains(&nodes) && contains(&nodes[..1]));
        services.record(&service(), OTHER, DeniedBy::Node, &denial(), at(2));
        assert!(contains(&nodes) && !contains(&[]));
        services.record(&service(), OTHER, DeniedBy::Node, &response(202, "{}"), at(3));
        assert!(!contains(&nodes));
    }

    #[test]
    fn service_that_was_known_may_be_starting() {
        let services = UnknownServices::new();
        let nodes = ["http://a".to_owned()];
        services.record(&service(), NODE, DeniedBy::Node, &response(200, "[]"), at(1));
        services.record(&service(), NODE, DeniedBy::Node, &denial(), at(10));
        services.record(&service(), NODE, DeniedBy::Node, &denial(), at(60));
        let contains = [60, 69, 70].map(|now| services.contains(&service(), &nodes, at(now)));
        assert_eq!(contains, [false, false, true]);
    }

    #[test]
    fn service_with_committed_batches_may_be_starting() {
        let services = UnknownServices::new();
        let nodes = ["http://a".to_owned()];
        services.set_history(Arc::new(AllCommitted));
        for second in [1, 60] {
            services.record(&service(), NODE, DeniedBy::Node, &denial(), at(second));
            assert!(!services.contains(&service(), &nodes, at(second)));
        }
        assert!(services.contains(&service(), &nodes, at(61)));
    }

    #[test]
    fn nodes_are_asked_first_about_a_service_that_is_new() {
        let services = UnknownServices::new();
        assert!(services.should_ask_first(&service(), at(0)));
        services.asked_first(&service(), true, at(0));
        let asks = [1, 2].map(|now| services.should_ask_first(&service(), at(now)));
        assert_eq!(asks, [false, true], "the answer showed nothing");
        for response in [denial(), response(200, "[]")] {
            services.record(&service(), NODE, DeniedBy::Node, &response, at(2));
            assert!(!services.should_ask_first(&service(), at(20)));
        }
    }

    #[test]
    fn clients_do_not_wait_repeatedly_for_a_hung_node() {
        let services = UnknownServices::new();
        services.asked_first(&service(), false, at(1));
        let other = "abcDE-F0123::gsYY".parse().unwrap();
        let asks = [10, 11].map(|now| services.should_ask_first(&other, at(now)));
        assert_eq!(asks, [false, true]);
    }

    #[test]
    fn other_answers_do_not_deny_a_service() {
        let services = UnknownServices::new();
        let nodes = ["http://a".to_owned()];
        for other in [
            response(404, r#"{"code":"404","message":"endpoint not found"}"#),
            response(404, "<html>not found</html>"),
            response(500, r#"{"message":"scabbard service gsZZ on circuit x not found"}"#),
        ] {
            services.record(&service(), NODE, DeniedBy::Node, &other, at(1));
            assert!(!services.contains(&service(), &nodes, at(1)), "{other:?}");
        }
        services.record(&service(), NODE, DeniedBy::Node, &denial(), at(1));
        services.record(&service(), NODE, DeniedBy::Node, &response(500, ""), at(2));
        assert!(services.contains(&service(), &nodes, at(2)));
    }

    #[test]
    fn denied_services_do_not_evict_known_ones() {
        let services = UnknownServices::new();
        services.record(&service(), NODE, DeniedBy::Node, &response(200, "[]"), at(0));
        let made_up = |number: usize| format!("abcDE-F0123::{number}").parse().unwrap();
        for number in 0..=UnknownServices::DENIED {
            services.record(&made_up(number), NODE, DeniedBy::Node, &denial(), at(1));
        }
        assert!(services.was_known(&service()));
        let nodes = ["http://a".to_owned()];
        let is_denied = |number| services.contains(&made_up(number), &nodes, at(1));
        assert!(!is_denied(0) && is_denied(1), "the oldest is forgotten");
    }

    #[test]
    fn nodes_are_asked_again_by_one_caller_after_a_while() {
        let services = UnknownServices::new();
        let nodes = ["http://a".to_owned()];
        services.record(&service(), NODE, DeniedBy::Node, &denial(), at(0));
        let asks = [1, 2, 2, 3, 4].map(|now| services.should_ask(&service(), &nodes, at(now)));
        assert_eq!(asks, [false, true, false, false, true]);
        services.record(&service(), NODE, DeniedBy::Node, &denial(), at(5));
        assert!(!services.should_ask(&service(), &nodes, at(6)));
    }
}
