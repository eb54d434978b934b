//! The clients' keys that the nodes accept.

use std::{sync::Mutex, time::Duration};

use grid_batch_core::batches::SignerId;
use grid_batch_core::ledger::{KeyRefusal, LedgerKey};
use grid_batch_core::tokens::AccessScope;
use grid_batch_core::{MonotonicTime, ScopeId, ServiceId, ServiceScopeId};
use grid_batch_http::HttpResponse;
use grid_batch_support::{BoundedMap, lock};

use crate::{
    context::{ScabbardContext, parse_scope},
    message::{error_message, response_message},
    unknown_services::{DeniedBy, denies_service},
};

/// The answers of nodes about keys. A permission applies to all services of a node.
pub(crate) struct AcceptedKeys(Mutex<BoundedMap<Permission, Answer>>);

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Permission {
    node: String,
    key: SignerId,
    /// Whether the permission is to write. Reading and writing are separate permissions.
    writes: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Answer {
    is_accepted: bool,
    at: MonotonicTime,
}

impl AcceptedKeys {
    const LIMIT: usize = 20_000;
    /// An operator of the node may remove a key that was accepted.
    const ACCEPTED_FOR: Duration = Duration::from_mins(1);
    /// An operator of the node may add a key that was refused.
    const REFUSED_FOR: Duration = Duration::from_secs(5);

    pub(crate) fn new() -> Self {
        Self(Mutex::new(BoundedMap::new(Self::LIMIT)))
    }
}

impl Answer {
    fn is_recent(self, now: MonotonicTime) -> bool {
        let limit =
            if self.is_accepted { AcceptedKeys::ACCEPTED_FOR } else { AcceptedKeys::REFUSED_FOR };
        now.since(self.at) < limit
    }

    fn result(self) -> Result<(), KeyRefusal> {
        if self.is_accepted { Ok(()) } else { Err(KeyRefusal::Refused) }
    }
}

impl ScabbardContext {
    /// Checks whether the node that gets the service's batches grants the key this scope, by a recent answer or by
    /// asking it now. While it does not answer, its last answer is used if it accepted the key.
    pub(crate) async fn check_key(
        &self,
        service: &ServiceId,
        key: LedgerKey<'_>,
        scope: AccessScope,
    ) -> Result<(), KeyRefusal> {
        let not_asked = |error: &dyn ToString| KeyRefusal::NotAsked(error.to_string());
        let service = parse_scope(service.as_str()).map_err(|error| not_asked(&error))?;
        let nodes = self.nodes_of_batch(&service, "").map_err(|error| not_asked(&error))?;
        let Some(node) = nodes.into_iter().next() else {
            return Err(KeyRefusal::NotAsked(format!("no node has the service {service}")));
        };
        let permission = Permission { node, key: key.id, writes: scope == AccessScope::Submit };
        let known = lock(&self.accepted_keys.0).get(&permission).copied();
        if let Some(answer) = known.filter(|answer| answer.is_recent(self.clock.monotonic())) {
            return answer.result();
        }
        match self.ask_node_about_key(&permission, &service, key.token).await {
            Ok(is_accepted) => {
                let answer = Answer { is_accepted, at: self.clock.monotonic() };
                lock(&self.accepted_keys.0).set(&permission, answer);
                answer.result()
            }
            Err(_) if known.is_some_and(|answer| answer.is_accepted) => Ok(()),
            Err(reason) => Err(KeyRefusal::NotAsked(reason)),
        }
    }

    async fn ask_node_about_key(
        &self,
        permission: &Permission,
        service: &ServiceScopeId,
        token: &str,
    ) -> Result<bool, String> {
        let node = &permission.node;
        let response = if permission.writes {
            self.client.ask_whether_may_write(node, service, token).await
        } else {
            self.client.ask_whether_may_read(node, service, token).await
        };
        let response = response.map_err(|error| error.to_string())?;
        let (id, now) = (service.service_id(), self.clock.monotonic());
        self.unknown_services.record(id, node, DeniedBy::Node, &response, now);
        is_accepted(&response).ok_or_else(|| {
            format!("it answered {}: {}", response.status, response_message(&response))
        })
    }
}

/// Whether an answer shows that the request was authorized. `None`: it does not show it.
fn is_accepted(response: &HttpResponse) -> Option<bool> {
    match response.status {
        401 | 403 => Some(false),
        400 if error_message(response).is_some() => Some(true),
        // The node looks for the service after it has authorized the request.
        404 if denies_service(response) => Some(true),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_that_precede_authorization_show_nothing() {
        let accepted = |status, body: &str| {
            let body = Ok(body.as_bytes().to_vec());
            is_accepted(&HttpResponse { status, retry_after: None, body })
        };
        assert_eq!(
            accepted(400, r#"{"code":"400","message":"No batch IDs specified"}"#),
            Some(true)
        );
        let no_service = r#"{"message":"scabbard service gsAA on circuit abcDE-01234 not found"}"#;
        assert_eq!(accepted(404, no_service), Some(true));
        assert_eq!([401, 403].map(|status| accepted(status, "")), [Some(false); 2]);
        assert_eq!(accepted(400, "<html>Bad Request</html>"), None, "a proxy may say so");
        for status in [404, 408, 429, 500, 502, 503] {
            assert_eq!(accepted(status, r#"{"code":"404","message":"endpoint not found"}"#), None);
        }
    }

    #[test]
    fn answers_are_recent_for_a_while() {
        let at = |seconds| MonotonicTime::default().plus(Duration::from_secs(seconds));
        let recent = |is_accepted, now| Answer { is_accepted, at: at(10) }.is_recent(at(now));
        assert_eq!([69, 70].map(|now| recent(true, now)), [true, false]);
        assert_eq!([14, 15].map(|now| recent(false, now)), [true, false]);
    }
}
