//! Whether the ledger's nodes have a service, for the intake of batches.

use futures_util::future::join_all;
use grid_batch_core::{BatchResult, ItemId, ScopeId, ServiceId, ServiceScopeId};
use grid_batch_http::origin;
use tokio::time::{Instant, timeout};

use crate::{
    Scabbard,
    context::{ScabbardContext, parse_scope},
    status_query::parse_response,
    unknown_services::{UnknownServices, denies_service},
};

/// Finds out whether the nodes have a service, as far as they have reported it.
///
/// The nodes are asked about an unknown service, and after some seconds again if they did not have it.
impl Scabbard {
    pub(crate) async fn check_service(&self, service: &ServiceId) -> Result<bool, String> {
        // If the nodes cannot be asked, the batch is stored and waits.
        let Ok(scope) = parse_scope(service.as_str()) else { return Ok(false) };
        let Ok(nodes) = self.0.nodes_of_batch(&scope, "") else { return Ok(false) };
        let unknown = &self.0.unknown_services;
        let now = || self.0.clock.monotonic();
        let is_unknown = || unknown.contains(service, &nodes, now());
        if unknown.should_ask_first(service, now()) {
            self.ask_first(service, &scope, &nodes).await;
        } else if is_unknown() && unknown.should_ask(service, &nodes, now()) {
            self.ask_about(&scope, &nodes).await;
        }
        if is_unknown() { Err(reason(&scope, &nodes)) } else { Ok(unknown.was_known(service)) }
    }

    /// Asks about an unknown service. A client waits for the answer.
    async fn ask_first(&self, service: &ServiceId, scope: &ServiceScopeId, nodes: &[String]) {
        let unknown = &self.0.unknown_services;
        let ask = async {
            let _permit = unknown.first_questions.acquire().await;
            // Another request for the service may have asked meanwhile.
            if unknown.should_ask_first(service, self.0.clock.monotonic()) {
                self.ask_about(scope, nodes).await;
            }
        };
        let started = Instant::now();
        let limit = UnknownServices::FIRST_ANSWER_LIMIT;
        let _ = timeout(limit, ask).await;
        let was_quick = started.elapsed() < limit / 4;
        unknown.asked_first(service, was_quick, self.0.clock.monotonic());
    }

    /// Asks the nodes. The query for statuses records the answers.
    async fn ask_about(&self, scope: &ServiceScopeId, nodes: &[String]) {
        let id = no_batch();
        let ids = [id.as_str()];
        join_all(nodes.iter().map(|node| self.0.query_statuses(node, scope, &ids))).await;
    }
}

/// An id that no batch has.
fn no_batch() -> String {
    ItemId::from_bytes([0; ItemId::BYTES]).to_string()
}

impl ScabbardContext {
    /// Whether a node has a service, asked once.
    pub(crate) async fn is_service_at(
        &self,
        node: &str,
        service: &ServiceScopeId,
    ) -> BatchResult<bool> {
        let response = self.client.get_statuses(node, service, &[&no_batch()]).await?;
        if denies_service(&response) {
            Ok(false)
        } else {
            parse_response(response, &[&no_batch()]).map(|_| true)
        }
    }

    /// Why no batch can be sent to this service, if all its nodes have reported that they do not have it.
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
    if has_present_form(scope) {
        denied
    } else {
        format!(
            "{denied} (circuit ids of Splinter are five letters or digits, a dash and five more; service \
             ids are four)"
        )
    }
}

/// Whether the ids follow the rule of current Splinter versions. Circuits of older versions do not.
fn has_present_form(scope: &ServiceScopeId) -> bool {
    let is_word = |word: &str, length| {
        word.len() == length && word.bytes().all(|byte| byte.is_ascii_alphanumeric())
    };
    let circuit = scope.circuit().split_once('-');
    circuit.is_some_and(|(first, second)| is_word(first, 5) && is_word(second, 5))
        && is_word(scope.service(), 4)
}

#[cfg(test)]
mod tests {
    use super::*;

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
