use std::{collections::HashMap, fmt};

use grid_batch_core::{ScopeId, UrlResolver};

use crate::{redact::host, resolver::NO_ADDRESS};

/// An address for each service.
pub struct PerServiceUrlResolver<S: ScopeId> {
    urls: HashMap<S, String>,
    otherwise: Otherwise,
}

enum Otherwise {
    Url(String),
    Error(String),
}

impl<S: ScopeId> PerServiceUrlResolver<S> {
    /// These addresses; batches of other services are not sent.
    pub fn new(urls: impl IntoIterator<Item = (S, String)>) -> Self {
        let otherwise = Otherwise::Error("no address is configured for the service".to_owned());
        Self { urls: urls.into_iter().collect(), otherwise }
    }

    /// This address for all other services.
    #[must_use]
    pub fn with_default(self, url: impl Into<String>) -> Self {
        Self { otherwise: Otherwise::Url(url.into()), ..self }
    }

    /// Batches of other services are not sent, for this reason.
    #[must_use]
    pub fn with_error(self, reason: impl Into<String>) -> Self {
        Self { otherwise: Otherwise::Error(reason.into()), ..self }
    }
}

impl<S: ScopeId> UrlResolver for PerServiceUrlResolver<S> {
    type Id = S;

    fn url(&self, scope_id: &S) -> String {
        match (self.urls.get(scope_id), &self.otherwise) {
            (Some(url), _) | (None, Otherwise::Url(url)) => url.clone(),
            (None, Otherwise::Error(reason)) => format!("{NO_ADDRESS} {reason}: {scope_id}"),
        }
    }
}

impl<S: ScopeId> fmt::Debug for PerServiceUrlResolver<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hosts = self.urls.iter().map(|(scope, url)| (scope.to_string(), host(url)));
        let mut shown = f.debug_map();
        shown.entries(hosts);
        match &self.otherwise {
            Otherwise::Url(url) => shown.entry(&"*", &host(url)),
            Otherwise::Error(reason) => shown.entry(&"*", reason),
        };
        shown.finish()
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
    fn each_service_has_its_address_and_all_others_the_default() {
        let resolver = resolver().with_default("http://two");
        assert_eq!(resolver.url(&scope("a::b")), "http://u:secret@one");
        assert_eq!(resolver.url(&scope("a::c")), "http://two");
        assert_eq!(format!("{resolver:?}"), r#"{"a::b": "http://one", "*": "http://two"}"#);
    }

    #[test]
    fn a_service_without_an_address_gets_a_reason() {
        assert_eq!(
            resolver().url(&scope("a::c")),
            "no-address: no address is configured for the service: a::c"
        );
        let resolver = resolver().with_error("not ours");
        assert_eq!(resolver.url(&scope("a::c")), "no-address: not ours: a::c");
    }
}
