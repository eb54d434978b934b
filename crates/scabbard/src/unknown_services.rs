//! The services that the ledger's nodes have said that they do not have.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    time::Duration,
};

use futures_core::future::BoxFuture;
use futures_util::future::join_all;
use grid_batch_core::{
    AccessScope, BatchResult, CommitHistory, HeaderId, KeyRefusal, LedgerKey, MonotonicTime,
    ScopeId, ServiceCheck, ServiceId, ServiceScopeId,
};
use grid_batch_http::{HttpResponse, origin};
use grid_batch_support::BoundedMap;
use log::{debug, info, warn};
use tokio::{
    sync::Semaphore,
    time::{Instant, timeout},
};

use crate::{
    context::{ScabbardContext, parse_scope},
    message::error_message,
    status_query::parse_response,
};

/// The nodes that have said that they do not have a service.
pub(crate) struct UnknownServices {
    services: Mutex<BoundedMap<ServiceId, Denials>>,
    /// Tells which services had batches before this process started.
    history: OnceLock<Arc<dyn CommitHistory>>,
    /// Limits the questions about services of which nothing is known.
    first_questions: Semaphore,
    /// When a node last kept clients waiting for the answer to such a question.
    silent_at: Mutex<Option<MonotonicTime>>,
}

#[derive(Default)]
struct Denials {
    nodes: Vec<Denial>,
    /// A node had the service before.
    was_known: bool,
    /// When the nodes were last asked only because of this entry.
    asked_at: Option<MonotonicTime>,
}

/// Which node denies a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DeniedBy {
    /// One that the batches of the service are sent to.
    Node,
    /// The other node of its circuit, where the service has this id.
    Peer,
}

struct Denial {
    node: String,
    /// When the node said so first, and last.
    first: MonotonicTime,
    last: MonotonicTime,
}

impl UnknownServices {
    const LIMIT: usize = 100_000;
    /// Nodes are asked again after this time, because a circuit may have been created.
    const ASKED_AGAIN_AFTER: Duration = Duration::from_secs(2);
    /// How long a client waits for the answer to the first question about a service.
    const FIRST_ANSWER_LIMIT: Duration = Duration::from_secs(1);
    /// After a question that was not answered in time, clients do not wait for others for this time.
    const SILENT_FOR: Duration = Duration::from_secs(10);
    const FIRST_QUESTIONS: usize = 8;
    /// A service that a node had before counts as known for this time: a node that starts answers 404
    /// for services that it has not started yet.
    const STARTED_WITHIN: Duration = Duration::from_mins(1);

    pub(crate) fn new() -> Self {
        Self {
            services: Mutex::new(BoundedMap::new(Self::LIMIT)),
            history: OnceLock::new(),
            first_questions: Semaphore::new(Self::FIRST_QUESTIONS),
            silent_at: Mutex::new(None),
        }
    }

    /// Sets what tells which services had batches before this process started.
    pub(crate) fn set_history(&self, history: Arc<dyn CommitHistory>) {
        // It is set once.
        let _ = self.history.set(history);
    }

    /// Remembers what the response of a node tells about this service.
    pub(crate) fn record(
        &self,
        service: &ServiceId,
        (node, denied_by): (&str, DeniedBy),
        response: &HttpResponse,
        now: MonotonicTime,
    ) {
        if denies_service(response) {
            self.add(service, (node, denied_by), now);
        } else if matches!(response.status, 200 | 202) {
            self.confirm(service);
        }
    }

    fn add(&self, service: &ServiceId, (node, by): (&str, DeniedBy), now: MonotonicTime) {
        let had_batches = self.had_batches(service);
        let mut services = self.lock();
        let denials = services.get_or_insert_with(service, Denials::default);
        denials.was_known |= had_batches;
        if denials.nodes.is_empty() {
            let node = origin(node);
            let node = node.as_str();
            match (by, denials.was_known) {
                (_, true) => warn!(service:%, node;
                    "the node has not started this service, which it had before: its batches wait until it has"),
                (DeniedBy::Node, false) => warn!(service:%, node;
                    "the node does not have this service: its batches wait until it has; correct the id, or \
                     create the circuit"),
                (DeniedBy::Peer, false) => warn!(service:%, node;
                    "the node does not have this service of ledger.peers, so it proves nothing about batches; \
                     correct the id: each node of a circuit has an id of its own"),
            }
        }
        match denials.nodes.iter_mut().find(|denial| denial.node == node) {
            Some(denial) => denial.last = now,
            None => denials.nodes.push(Denial { node: node.to_owned(), first: now, last: now }),
        }
    }

    fn confirm(&self, service: &ServiceId) {
        let mut services = self.lock();
        let denials = services.get_or_insert_with(service, Denials::default);
        if !denials.nodes.is_empty() {
            info!(service:%; "a node has this service now");
        }
        *denials = Denials { was_known: true, ..Denials::default() };
    }

    /// Whether the service had batches before this process started. The store is asked once, at the first denial.
    fn had_batches(&self, service: &ServiceId) -> bool {
        let is_known = |denials: &Denials| denials.was_known || !denials.nodes.is_empty();
        if self.lock().get(service).is_some_and(is_known) {
            return false;
        }
        let Some(history) = self.history.get() else { return false };
        history.has_committed(service).unwrap_or_else(|error| {
            debug!(service:%, error:%; "cannot read whether the service had batches before");
            false
        })
    }

    /// Whether all of these nodes have said that they do not have the service.
    pub(crate) fn contains(
        &self,
        service: &ServiceId,
        nodes: &[String],
        now: MonotonicTime,
    ) -> bool {
        let services = self.lock();
        let Some(denials) = services.get(service) else { return false };
        let minimum = if denials.was_known { Self::STARTED_WITHIN } else { Duration::ZERO };
        let denied = denials.of(nodes).filter(|denial| now.since(denial.first) >= minimum);
        !nodes.is_empty() && denied.count() == nodes.len()
    }

    /// Whether the nodes should be asked again. It is the answer to one caller only.
    fn should_ask(&self, service: &ServiceId, nodes: &[String], now: MonotonicTime) -> bool {
        let is_old = |at: MonotonicTime| now.since(at) >= Self::ASKED_AGAIN_AFTER;
        let mut services = self.lock();
        let Some(denials) = services.get_mut(service) else { return false };
        let has_old_answer = denials.of(nodes).any(|denial| is_old(denial.last));
        let should_ask = has_old_answer && denials.asked_at.is_none_or(is_old);
        if should_ask {
            denials.asked_at = Some(now);
        }
        should_ask
    }

    /// Whether nothing is known of the service, and the nodes should be asked before a batch is stored.
    fn should_ask_first(&self, service: &ServiceId, now: MonotonicTime) -> bool {
        let silent_at = *self.silent_at.lock().unwrap_or_else(PoisonError::into_inner);
        if silent_at.is_some_and(|at| now.since(at) < Self::SILENT_FOR) {
            return false;
        }
        let is_recent = |at: MonotonicTime| now.since(at) < Self::ASKED_AGAIN_AFTER;
        self.lock().get(service).is_none_or(|denials| {
            !denials.was_known
                && denials.nodes.is_empty()
                && !denials.asked_at.is_some_and(is_recent)
        })
    }

    /// The first question about a service was asked, and has ended.
    fn asked_first(&self, service: &ServiceId, was_quick: bool, now: MonotonicTime) {
        let mut services = self.lock();
        let denials = services.get_or_insert_with(service, Denials::default);
        denials.asked_at = Some(now);
        let is_answered = denials.was_known || !denials.nodes.is_empty();
        drop(services);
        if !is_answered && !was_quick {
            *self.silent_at.lock().unwrap_or_else(PoisonError::into_inner) = Some(now);
        }
    }

    fn lock(&self) -> MutexGuard<'_, BoundedMap<ServiceId, Denials>> {
        self.services.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Denials {
    fn of<'a>(&'a self, nodes: &'a [String]) -> impl Iterator<Item = &'a Denial> {
        self.nodes.iter().filter(|denial| nodes.contains(&denial.node))
    }
}

/// Whether a node says that it does not have the service. A proxy that does not have the path answers
/// 404, too.
pub(crate) fn denies_service(response: &HttpResponse) -> bool {
    response.status == 404
        && error_message(response).is_some_and(|message| {
            message.starts_with("scabbard service ") && message.ends_with("not found")
        })
}

/// Tells whether the nodes have a service, as far as they have said so.
///
/// The nodes are asked about a service of which nothing is known, and after some seconds again about one that they did
/// not have.
pub struct ScabbardServiceCheck(pub(crate) Arc<ScabbardContext>);

impl ScabbardServiceCheck {
    async fn check_service(&self, service: &ServiceId) -> Result<(), String> {
        // A batch that could not be asked about is stored, and waits.
        let Ok(scope) = parse_scope(service.as_str()) else { return Ok(()) };
        let Ok(nodes) = self.0.nodes_of_batch(&scope, "") else { return Ok(()) };
        let unknown = &self.0.unknown_services;
        let now = || self.0.clock.monotonic();
        let is_unknown = || unknown.contains(service, &nodes, now());
        if unknown.should_ask_first(service, now()) {
            self.ask_first(service, &scope, &nodes).await;
        } else if !is_unknown() {
            return Ok(());
        } else if unknown.should_ask(service, &nodes, now()) {
            self.ask(&scope, &nodes).await;
        }
        match is_unknown() {
            true => Err(reason(&scope, &nodes)),
            false => Ok(()),
        }
    }

    /// Asks about a service of which nothing is known. A client waits for the answer.
    async fn ask_first(&self, service: &ServiceId, scope: &ServiceScopeId, nodes: &[String]) {
        let unknown = &self.0.unknown_services;
        let ask = async {
            let _permit = unknown.first_questions.acquire().await;
            // Another request for the service may have asked meanwhile.
            if unknown.should_ask_first(service, self.0.clock.monotonic()) {
                self.ask(scope, nodes).await;
            }
        };
        let started = Instant::now();
        let limit = UnknownServices::FIRST_ANSWER_LIMIT;
        let _ = timeout(limit, ask).await;
        let was_quick = started.elapsed() < limit / 4;
        unknown.asked_first(service, was_quick, self.0.clock.monotonic());
    }

    /// The answers are recorded where statuses are queried.
    async fn ask(&self, scope: &ServiceScopeId, nodes: &[String]) {
        let id = no_batch();
        let ids = [id.as_str()];
        join_all(nodes.iter().map(|node| self.0.query_statuses(node, scope, &ids))).await;
    }
}

impl ServiceCheck for ScabbardServiceCheck {
    fn check<'a>(&'a self, service_id: &'a ServiceId) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(self.check_service(service_id))
    }

    fn check_history<'a>(
        &'a self,
        service_id: &'a ServiceId,
        is_new: bool,
    ) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(self.0.refuse_unknown_history(service_id, is_new))
    }

    fn check_key<'a>(
        &'a self,
        service_id: &'a ServiceId,
        key: LedgerKey<'a>,
        scope: AccessScope,
    ) -> BoxFuture<'a, Result<(), KeyRefusal>> {
        Box::pin(self.0.check_key(service_id, key, scope))
    }
}

/// An id that no batch has.
fn no_batch() -> String {
    HeaderId::from_bytes([0; HeaderId::BYTES]).to_string()
}

impl ScabbardContext {
    /// Whether a node has a service, asked once.
    pub(crate) async fn has_service(
        &self,
        node: &str,
        service: &ServiceScopeId,
    ) -> BatchResult<bool> {
        let response = self.client.get_statuses(node, service, &[&no_batch()]).await?;
        match denies_service(&response) {
            true => Ok(false),
            false => parse_response(&response, &[&no_batch()]).map(|_| true),
        }
    }

    /// Why no batch can be sent to this service, if all its nodes have said that they do not have it.
    pub(crate) fn unknown_service(&self, scope: &ServiceScopeId) -> Option<String> {
        let nodes = self.nodes_of_batch(scope, "").ok()?;
        let now = self.clock.monotonic();
        let is_unknown = self.unknown_services.contains(scope.service_id(), &nodes, now);
        is_unknown.then(|| {
            format!("the ledger does not have the service {scope}: {}", reason(scope, &nodes))
        })
    }
}

fn reason(scope: &ServiceScopeId, nodes: &[String]) -> String {
    let nodes: Vec<String> = nodes.iter().map(|node| origin(node)).collect();
    let denied = format!("it was not found at {}", nodes.join(", "));
    match has_present_form(scope) {
        true => denied,
        false => format!(
            "{denied} (circuit ids of Splinter are five letters or digits, a dash and five more; service \
             ids are four)"
        ),
    }
}

/// Whether the ids follow Splinter's present rule. Circuits of older versions do not.
fn has_present_form(scope: &ServiceScopeId) -> bool {
    let is_word = |word: &str, length| {
        word.len() == length && word.bytes().all(|byte| byte.is_ascii_alphanumeric())
    };
    let circuit = scope.circuit().split_once('-');
    circuit.is_some_and(|(first, second)| is_word(first, 5) && is_word(second, 5))
        && is_word(scope.service(), 4)
}

impl fmt::Debug for ScabbardServiceCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScabbardServiceCheck").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use grid_batch_core::CommittedBefore;

    use super::*;

    const NODE: (&str, DeniedBy) = ("http://a", DeniedBy::Node);
    const OTHER: (&str, DeniedBy) = ("http://b", DeniedBy::Node);

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
        fn committed_before(&self, _: &ServiceId, _: &HeaderId) -> BatchResult<CommittedBefore> {
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
        services.record(&service(), NODE, &denial(), at(1));
        assert!(!contains(&nodes) && contains(&nodes[..1]));
        services.record(&service(), OTHER, &denial(), at(2));
        assert!(contains(&nodes) && !contains(&[]));
        services.record(&service(), OTHER, &response(202, "{}"), at(3));
        assert!(!contains(&nodes));
    }

    #[test]
    fn service_that_was_known_may_be_starting() {
        let services = UnknownServices::new();
        let nodes = ["http://a".to_owned()];
        services.record(&service(), NODE, &response(200, "[]"), at(1));
        services.record(&service(), NODE, &denial(), at(10));
        services.record(&service(), NODE, &denial(), at(60));
        let contains = [60, 69, 70].map(|now| services.contains(&service(), &nodes, at(now)));
        assert_eq!(contains, [false, false, true]);
    }

    #[test]
    fn service_with_committed_batches_may_be_starting() {
        let services = UnknownServices::new();
        let nodes = ["http://a".to_owned()];
        services.set_history(Arc::new(AllCommitted));
        for second in [1, 60] {
            services.record(&service(), NODE, &denial(), at(second));
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
        assert_eq!(asks, [false, true], "the answer told nothing");
        for response in [denial(), response(200, "[]")] {
            services.record(&service(), NODE, &response, at(2));
            assert!(!services.should_ask_first(&service(), at(20)));
        }
    }

    #[test]
    fn clients_do_not_wait_for_a_silent_node_again_and_again() {
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
            services.record(&service(), NODE, &other, at(1));
            assert!(!services.contains(&service(), &nodes, at(1)), "{other:?}");
        }
        services.record(&service(), NODE, &denial(), at(1));
        services.record(&service(), NODE, &response(500, ""), at(2));
        assert!(services.contains(&service(), &nodes, at(2)));
    }

    #[test]
    fn nodes_are_asked_again_by_one_caller_after_a_while() {
        let services = UnknownServices::new();
        let nodes = ["http://a".to_owned()];
        services.record(&service(), NODE, &denial(), at(0));
        let asks = [1, 2, 2, 3, 4].map(|now| services.should_ask(&service(), &nodes, at(now)));
        assert_eq!(asks, [false, true, false, false, true]);
        services.record(&service(), NODE, &denial(), at(5));
        assert!(!services.should_ask(&service(), &nodes, at(6)));
    }

    #[test]
    fn only_ids_that_splinter_refuses_are_explained() {
        let explained = |id: &str| {
            let scope: ServiceScopeId = id.parse().unwrap();
            reason(&scope, &["http://user:secret@a:1/x".to_owned()])
        };
        assert_eq!(explained("abcDE-F0123::gsZZ"), "it was not found at http://a:1");
        for id in ["abcDE-F0123::gsZZZ", "abcDE::gsZZ", "abcDE-F012::gsZZ", "abcDE-F0123::gs_Z"] {
            assert!(explained(id).contains("service ids are four"), "{id}");
        }
    }
}
