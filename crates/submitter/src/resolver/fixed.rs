use std::{fmt, marker::PhantomData};

use grid_batch_core::{ScopeId, StatusUrlResolver, UrlResolver};
use grid_batch_support::redact_url;

/// A resolver with one address for every scope.
pub struct FixedUrlResolver<S> {
    url: String,
    scope: PhantomData<fn() -> S>,
}

impl<S> FixedUrlResolver<S> {
    /// A resolver that always returns `url`.
    pub fn new(url: impl Into<String>) -> Self {
        Self { url: url.into(), scope: PhantomData }
    }
}

impl<S: ScopeId> UrlResolver for FixedUrlResolver<S> {
    type Id = S;

    fn url(&self, _: &S) -> String {
        self.url.clone()
    }
}

impl<S> StatusUrlResolver for FixedUrlResolver<S> {
    fn status_urls(&self, _: &str, _: &str) -> Vec<String> {
        vec![self.url.clone()]
    }
}

impl<S> fmt::Debug for FixedUrlResolver<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("FixedUrlResolver").field(&redact_url(&self.url)).finish()
    }
}

#[cfg(test)]
mod tests {
    use grid_batch_core::GlobalScopeId;

    use super::*;

    #[test]
    fn debug_output_hides_the_secrets_of_the_url() {
        let resolver = FixedUrlResolver::new("http://user:secret@host:8008/path");
        assert_eq!(resolver.url(&GlobalScopeId), "http://user:secret@host:8008/path");
        assert_eq!(resolver.status_urls("any", "1"), ["http://user:secret@host:8008/path"]);
        assert_eq!(format!("{resolver:?}"), "FixedUrlResolver(\"http://host:8008\")");
    }
}
