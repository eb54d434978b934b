use std::{collections::HashMap, fmt};

use grid_batch_core::{ScopeId, ServiceId, StatusUrlResolver, UrlResolver};
use grid_batch_support::redact_url;

use crate::resolver::NO_ADDRESS;

/// A resolver with an address for each service.
pub struct PerServiceUrlResolver<S: ScopeId> {
    urls: HashMap<S, String>,
    fallback: Fallback,
}

enum Fallback {
    Url(String),
    Error(String),
}

impl<S: ScopeId> PerServiceUrlResolver<S> {
    /// A resolver with these addresses. Batches of other services are not sent.
    pub fn new(urls: impl IntoIterator<Item = (S, String)>) -> Self {
        let fallback = Fallback::Error("no address is configured for the service".to_owned());
        Self { urls: urls.into_iter().collect(), fallback }
    }

    /// Sets the address of all other services.
    #[must_use]
    pub fn with_default(self, url: impl Into<String>) -> Self {
        Self { fallback: Fallback::Url(url.into()), ..self }
    }

    /// Sets the reason why batches of other services are not sent.
    #[must_use]
    pub fn with_error(self, reason: impl Into<String>) -> Self {
        Self { fallback: Fallback::Error(reason.into()), ..self }
    }

    /// The address of a service, or the reason why it has none.
    fn find(&self, scope_id: &S) -> Result<&str, &str> {
        match (self.urls.get(scope_id), &self.fallback) {
            (Some(url), _) | (None, Fallback::Url(url)) => Ok(url),
            (None, Fallback::Error(reason)) => Err(reason),
        }
    }
}

impl<S: ScopeId> UrlResolver for PerServiceUrlResolver<S> {
    type Id = S;

    fn url(&self, scope_id: &S) -> String {
        match self.find(scope_id) {
            Ok(url) => url.to_owned(),
            Err(reason) => format!("{NO_ADDRESS} {reason}: {scope_id}"),
        }
    }
}

impl<S: ScopeId> StatusUrlResolver for PerServiceUrlResolver<S> {
    fn status_urls(&self, service_id: &str, _: &str) -> Vec<String> {
        let service_id: Option<ServiceId> = service_id.parse().ok();
        let scope_id = service_id.and_then(|id| S::from_service_id(&id).ok());
        let url = scope_id.as_ref().and_then(|scope_id| self.find(scope_id).ok());
        url.map(str::to_owned).into_iter().collect()
    }
}

impl<S: ScopeId> fmt::Debug for PerServiceUrlResolver<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hosts = self.urls.iter().map(|(scope, url)| (scope.to_string(), redact_url(url)));
        let mut map = f.debug_map();
        map.entries(hosts);
        match &self.fallback {
            Fallback::Url(url) => map.entry(&"*", &redact_url(url)),
            Fallback::Error(reason) => map.entry(&"*", reason),
        };
        map.finish()
    }
}

#[cfg(test)]
mod tests {
    use grid_batch_core::ServiceScopeId;

    use super::*;

    fn scope(text: &str) -> ServiceScopeId {
        text.parse().unwrap()
    }

    fn resolver() -> PerServiceUrlResolver<ServiceScopeId> {
        PerServiceUrlResolver::new([(scope("a::b"), "http://u:secret@one".to_owned())])
    }

    #[test]
    fn other_services_have_the_default_address() {
        let resolver = resolver().with_default("http://two");
        assert_eq!(resolver.url(&scope("a::b")), "http://u:secret@one");
        assert_eq!(resolver.url(&scope("a::c")), "http://two");
        assert_eq!(format!("{resolver:?}"), r#"{"a::b": "http://one", "*": "http://two"}"#);
    }

    #[test]
    fn service_without_an_address_has_a_reason() {
        assert_eq!(
            resolver().url(&scope("a::c")),
            "no-address: no address is configured for the service: a::c"
        );
        let resolver = resolver().with_error("not ours");
        assert_eq!(resolver.url(&scope("a::c")), "no-address: not ours: a::c");
    }

    #[test]
    fn statuses_are_read_where_batches_are_sent() {
        assert_eq!(resolver().status_urls("a::b", "1"), ["http://u:secret@one"]);
        assert!(resolver().status_urls("a::c", "1").is_empty());
        let resolver = resolver().with_default("http://two");
        assert_eq!(resolver.status_urls("a::c", "1"), ["http://two"]);
        assert!(resolver.status_urls("no scope of this ledger", "1").is_empty());
        assert!(resolver.status_urls("global", "1").is_empty());
    }
}
