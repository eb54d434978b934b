//! The services that the ledger's nodes have said that they do not have.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures_core::future::BoxFuture;
use futures_util::future::join_all;
use grid_batch_core::{HeaderId, MonotonicTime, ScopeId, ServiceCheck, ServiceId, ServiceScopeId};
use grid_batch_http::{HttpResponse, origin};
use grid_batch_support::BoundedMap;
use log::{info, warn};

use crate::{
    context::{ScabbardContext, parse_scope},
    message::error_message,
};

/// The nodes that have said that they do not have a service.
pub(crate) struct UnknownServices(Mutex<BoundedMap<ServiceId, Denials>>);

#[derive(Default)]
struct Denials {
    nodes: Vec<Denial>,
    /// A node had the service before.
    was_known: bool,
    /// When the nodes were last asked only because of this entry.
    asked_at: Option<MonotonicTime>,
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
    const ASKED_AGAIN_AFTER: Duration = Duration::from_secs(10);
    /// A service that a node had before counts as known for this time: a node that starts answers 404
    /// for services that it has not started yet.
    const STARTED_WITHIN: Duration = Duration::from_mins(1);

    pub(crate) fn new() -> Self {
        Self(Mutex::new(BoundedMap::new(Self::LIMIT)))
    }

    /// Remembers what the response of a node tells about this service.
    pub(crate) fn record(
        &self,
        service: &ServiceId,
        node: &str,
        response: &HttpResponse,
        now: MonotonicTime,
    ) {
        if denies_service(response) {
            self.add(service, node, now);
        } else if matches!(response.status, 200 | 202) {
            self.confirm(service);
        }
    }

    fn add(&self, service: &ServiceId, node: &str, now: MonotonicTime) {
        let mut services = self.lock();
        let denials = services.get_or_insert_with(service, Denials::default);
        if denials.nodes.is_empty() {
            warn!(service:%, node = origin(node).as_str();
                "the node does not have this service: its batches wait until it has; correct the id, or \
                 create the circuit");
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

    fn lock(&self) -> MutexGuard<'_, BoundedMap<ServiceId, Denials>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Denials {
    fn of<'a>(&'a self, nodes: &'a [String]) -> impl Iterator<Item = &'a Denial> {
        self.nodes.iter().filter(|denial| nodes.contains(&denial.node))
    }
}

/// Whether a node says that it does not have the service. A proxy that does not have the path answers
/// 404, too.
fn denies_service(response: &HttpResponse) -> bool {
    response.status == 404
        && error_message(response).is_some_and(|message| {
            message.starts_with("scabbard service ") && message.ends_with("not found")
        })
}

/// Tells whether the nodes have a service, as far as they have said so.
///
/// A node is asked only about services that it did not have, and not before some seconds have passed.
pub struct ScabbardServiceCheck(pub(crate) Arc<ScabbardContext>);

impl ScabbardServiceCheck {
    async fn check_service(&self, service: &ServiceId) -> Result<(), String> {
        // A batch that could not be asked about is stored, and waits.
        let Ok(scope) = parse_scope(service.as_str()) else { return Ok(()) };
        let Ok(nodes) = self.0.nodes_of_batch(&scope, "") else { return Ok(()) };
        let unknown = &self.0.unknown_services;
        let is_unknown = || unknown.contains(service, &nodes, self.0.clock.monotonic());
        if !is_unknown() {
            return Ok(());
        }
        if unknown.should_ask(service, &nodes, self.0.clock.monotonic()) {
            self.ask(&scope, &nodes).await;
        }
        match is_unknown() {
            true => Err(reason(&scope, &nodes)),
            false => Ok(()),
        }
    }

    /// The answers are recorded where statuses are queried. No batch has this id.
    async fn ask(&self, scope: &ServiceScopeId, nodes: &[String]) {
        let id = HeaderId::from_bytes([0; HeaderId::BYTES]).to_string();
        let ids = [id.as_str()];
        join_all(nodes.iter().map(|node| self.0.query_statuses(node, scope, &ids))).await;
    }
}

impl ServiceCheck for ScabbardServiceCheck {
    fn check<'a>(&'a self, service_id: &'a ServiceId) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(self.check_service(service_id))
    }
}

impl ScabbardContext {
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
    use super::*;

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

    #[test]
    fn service_is_unknown_when_all_its_nodes_deny_it() {
        let services = UnknownServices::new();
        let nodes = ["http://a", "http://b"].map(ToOwned::to_owned);
        let contains = |nodes: &[String]| services.contains(&service(), nodes, at(2));
        services.record(&service(), "http://a", &denial(), at(1));
        assert!(!contains(&nodes) && contains(&nodes[..1]));
        services.record(&service(), "http://b", &denial(), at(2));
        assert!(contains(&nodes) && !contains(&[]));
        services.record(&service(), "http://b", &response(202, "{}"), at(3));
        assert!(!contains(&nodes));
    }

    #[test]
    fn service_that_was_known_may_be_starting() {
        let services = UnknownServices::new();
        let nodes = ["http://a".to_owned()];
        services.record(&service(), "http://a", &response(200, "[]"), at(1));
        services.record(&service(), "http://a", &denial(), at(10));
        services.record(&service(), "http://a", &denial(), at(60));
        let contains = [60, 69, 70].map(|now| services.contains(&service(), &nodes, at(now)));
        assert_eq!(contains, [false, false, true]);
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
            services.record(&service(), "http://a", &other, at(1));
            assert!(!services.contains(&service(), &nodes, at(1)), "{other:?}");
        }
        services.record(&service(), "http://a", &denial(), at(1));
        services.record(&service(), "http://a", &response(500, ""), at(2));
        assert!(services.contains(&service(), &nodes, at(2)));
    }

    #[test]
    fn nodes_are_asked_again_by_one_caller_after_a_while() {
        let services = UnknownServices::new();
        let nodes = ["http://a".to_owned()];
        services.record(&service(), "http://a", &denial(), at(0));
        let asks = [9, 10, 10, 19, 20].map(|now| services.should_ask(&service(), &nodes, at(now)));
        assert_eq!(asks, [false, true, false, false, true]);
        services.record(&service(), "http://a", &denial(), at(21));
        assert!(!services.should_ask(&service(), &nodes, at(30)));
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
