//! `mockall` mocks of the traits, for tests of the layers above.

use grid_batch_core::ScopeId;
use mockall::mock;

use crate::UrlResolver;

pub use crate::resolver::MockStatusUrlResolver;

// `automock` takes one type for the associated type, and mocks no result that borrows from an argument.
mock! {
    #[derive(Debug)]
    pub UrlResolver<S: ScopeId> {}
    impl<S: ScopeId> UrlResolver for UrlResolver<S> {
        type Id = S;
        fn url(&self, scope_id: &S) -> String;
    }
}

#[cfg(test)]
mod tests {
    use grid_batch_core::GlobalScopeId;

    use super::*;
    use crate::StatusUrlResolver;

    #[test]
    fn mocked_resolvers_return_urls() {
        let mut resolver = MockUrlResolver::new();
        resolver.expect_url().return_const("http://node".to_owned());
        assert_eq!(resolver.url(&GlobalScopeId), "http://node");
        let mut resolver = MockStatusUrlResolver::new();
        resolver.expect_status_urls().return_const(["http://node".to_owned()]);
        assert_eq!(resolver.status_urls("a", "batch"), ["http://node"]);
    }
}
