use std::{fmt, hash::Hash, sync::LazyLock};

use thiserror::Error;

use crate::{Excerpt, ServiceId, ServiceIdError};

/// A service id as interpreted by one kind of ledger.
///
/// Stores and queues order batches by [`ServiceId`]; an adapter needs to know what the text means.
pub trait ScopeId: Clone + fmt::Debug + fmt::Display + Eq + Hash + Send + Sync + 'static {
    /// Parses a service id by the rules of this kind of ledger.
    fn from_service_id(service_id: &ServiceId) -> Result<Self, ScopeIdError>;

    /// The service that orders batches of this scope.
    fn service_id(&self) -> &ServiceId;
}

/// Any service id, for callers that leave its meaning to the ledger.
impl ScopeId for ServiceId {
    fn from_service_id(service_id: &ServiceId) -> Result<Self, ScopeIdError> {
        Ok(service_id.clone())
    }

    fn service_id(&self) -> &ServiceId {
        self
    }
}

/// Why a service id is not a scope of this kind of ledger.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ScopeIdError {
    /// The text is not a service id.
    #[error(transparent)]
    ServiceId(#[from] ServiceIdError),
    /// A ledger without services was given the id of one.
    #[error("the service id {value} names a service; this ledger has only {GLOBAL:?}")]
    NotGlobal {
        /// The beginning of the text.
        value: Excerpt,
    },
    /// The text is not `circuit::service`.
    #[error(
        "the service id {value} is not circuit::service, \
         both of ASCII letters, digits, '-' and '_'"
    )]
    NotCircuitAndService {
        /// The beginning of the text.
        value: Excerpt,
    },
    /// The text does not have the form that the ledger's scopes have.
    #[error("the service id {value} is not {expected}")]
    Format {
        /// The beginning of the text.
        value: Excerpt,
        /// The form that scopes of this ledger have.
        expected: &'static str,
    },
}

const GLOBAL: &str = "global";

/// The one scope of a ledger that has no services, such as Sawtooth.
///
/// ```
/// use grid_batch_core::{GlobalScopeId, ScopeId};
///
/// assert_eq!(GlobalScopeId.service_id().as_str(), "global");
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct GlobalScopeId;

impl ScopeId for GlobalScopeId {
    fn from_service_id(service_id: &ServiceId) -> Result<Self, ScopeIdError> {
        if service_id.as_str() == GLOBAL {
            Ok(Self)
        } else {
            Err(ScopeIdError::NotGlobal { value: Excerpt::of(service_id.as_str()) })
        }
    }

    fn service_id(&self) -> &ServiceId {
        static ID: LazyLock<ServiceId> =
            LazyLock::new(|| GLOBAL.parse().expect("\"global\" follows the rules of a service id"));
        &ID
    }
}

impl fmt::Display for GlobalScopeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(GLOBAL)
    }
}

/// A service of a Splinter circuit, written `circuit::service`.
///
/// Both parts become segments of a URL, so they must not contain characters that need escaping there. Current versions
/// of Splinter have a stricter rule (five characters, a dash and five more for a circuit; four characters for a
/// service), but circuits of older versions do not follow it.
///
/// ```
/// use grid_batch_core::ServiceScopeId;
///
/// let scope: ServiceScopeId = "abcDE-F0123::gsAA".parse()?;
/// assert_eq!((scope.circuit(), scope.service()), ("abcDE-F0123", "gsAA"));
/// assert!("no-service::".parse::<ServiceScopeId>().is_err());
/// # Ok::<(), grid_batch_core::ScopeIdError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ServiceScopeId {
    service_id: ServiceId,
    circuit_length: usize,
}

impl ServiceScopeId {
    const SEPARATOR: &str = "::";

    /// The circuit.
    pub fn circuit(&self) -> &str {
        &self.service_id.as_str()[..self.circuit_length]
    }

    /// The service within the circuit.
    pub fn service(&self) -> &str {
        &self.service_id.as_str()[self.circuit_length + Self::SEPARATOR.len()..]
    }
}

impl ScopeId for ServiceScopeId {
    fn from_service_id(service_id: &ServiceId) -> Result<Self, ScopeIdError> {
        let is_name = |half: &str| {
            !half.is_empty()
                && half.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b))
        };
        match service_id.as_str().split_once(Self::SEPARATOR) {
            Some((circuit, service)) if is_name(circuit) && is_name(service) => {
                Ok(Self { service_id: service_id.clone(), circuit_length: circuit.len() })
            }
            _ => {
                Err(ScopeIdError::NotCircuitAndService { value: Excerpt::of(service_id.as_str()) })
            }
        }
    }

    fn service_id(&self) -> &ServiceId {
        &self.service_id
    }
}

impl std::str::FromStr for ServiceScopeId {
    type Err = ScopeIdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::from_service_id(&text.parse()?)
    }
}

impl fmt::Display for ServiceScopeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.service_id.fmt(f)
    }
}

/// A service at another node of its circuit, where it has an id of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerService {
    /// The service that batches are for.
    pub service: ServiceScopeId,
    /// Its id at the other node.
    pub peer: ServiceScopeId,
    /// The URL of the other node.
    pub url: String,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_text_is_a_scope_or_an_error(text in any::<String>()) {
            if let Ok(scope) = text.parse::<ServiceScopeId>() {
                prop_assert_eq!(format!("{}::{}", scope.circuit(), scope.service()), text);
            }
        }

        #[test]
        fn text_around_the_separator_never_panics(text in "[a-z:é]{0,8}::[a-z:é]{0,8}") {
            if let Ok(scope) = text.parse::<ServiceScopeId>() {
                prop_assert!(!scope.circuit().is_empty() && !scope.service().is_empty());
            }
        }
    }

    #[test]
    fn halves_that_would_change_a_url_are_refused() {
        for text in ["a/b::c", "..::c", "a::b::c", "a::b?x", "::b", "a::", "a", "а::b"] {
            assert!(text.parse::<ServiceScopeId>().is_err(), "{text}");
        }
    }

    #[test]
    fn global_scope_rejects_service_ids() {
        let named: ServiceId = "a::b".parse().unwrap();
        assert!(GlobalScopeId::from_service_id(&named).is_err());
        assert_eq!(GlobalScopeId::from_service_id(GlobalScopeId.service_id()), Ok(GlobalScopeId));
    }
}
