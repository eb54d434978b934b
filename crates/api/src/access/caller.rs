use std::{collections::BTreeSet, fmt, net::IpAddr, sync::Arc};

use axum::{extract::FromRequestParts, http::request::Parts};
use grid_batch_core::ServiceId;
use grid_batch_core::batches::{ClientId, SignerId};
use grid_batch_core::ledger::LedgerKey;
use grid_batch_core::tokens::{AccessScope, TokenId};
use grid_batch_withdrawals::TokenRules;

use super::{
    AccessControl, AccessMode,
    grant::{Services, services_of},
};
use crate::{access::AccessError, http::ApiError, rate_limits::ClientKey};

/// Who sent a request that is allowed, and for which services it is. It is an extension of the request.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    identity: CallerIdentity,
    /// For the scope that the request needs.
    services: Services,
    control: AccessControl,
    /// The token that a node of the ledger is shown, if the node decides what the caller may do.
    shown: Option<ShownToken>,
}

/// The Cylinder token of a request. `Debug` does not show it.
#[derive(Clone)]
pub(super) struct ShownToken(Arc<str>);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum CallerIdentity {
    Token { id: TokenId, name: Arc<str>, may_send: Arc<[String]> },
    Key(SignerId),
    Anonymous(IpAddr),
}

impl Caller {
    pub(super) fn new(
        identity: CallerIdentity,
        services: Services,
        control: AccessControl,
    ) -> Self {
        Self { identity, services, control, shown: None }
    }

    /// The owner of a key. A node of the ledger decides what the owner may do.
    pub(super) fn of_ledger_key(key: SignerId, token: &str, control: AccessControl) -> Self {
        let shown = Some(ShownToken(token.into()));
        Self { identity: CallerIdentity::Key(key), services: Services::All, control, shown }
    }

    /// The caller of a request. The middleware has set it; without it, nothing is allowed.
    pub(crate) fn of(request: &Parts) -> Result<&Self, ApiError> {
        Ok(request.extensions.get().ok_or(AccessError::NotAuthenticated)?)
    }

    /// Whether a request that lasts may go on: its token was not revoked and has not expired.
    pub(crate) fn is_still_allowed(&self) -> bool {
        match &self.identity {
            CallerIdentity::Token { id, .. } => self.control.knows_token(*id),
            // Keys are configured at the start.
            CallerIdentity::Key(_) | CallerIdentity::Anonymous(_) => true,
        }
    }

    /// Whether the request may be about this service.
    pub(crate) fn may(&self, service_id: &ServiceId) -> bool {
        self.services.has(service_id)
    }

    /// Refuses a request about a service of others.
    pub(crate) fn check(&self, service_id: &ServiceId) -> Result<(), ApiError> {
        if self.may(service_id) {
            Ok(())
        } else {
            Err(AccessError::ServiceOfOthers { id: service_id.clone() }.into())
        }
    }

    /// The key that a node of the ledger must accept.
    pub(crate) fn ledger_key(&self) -> Option<LedgerKey<'_>> {
        match (&self.identity, &self.shown) {
            (CallerIdentity::Key(id), Some(ShownToken(token))) => {
                Some(LedgerKey { id: *id, token })
            }
            _ => None,
        }
    }

    /// Whether the settings say what the caller's key may do. The nodes need not know such a key, so they get the
    /// server's own token.
    pub(crate) fn has_listed_key(&self) -> bool {
        matches!(self.identity, CallerIdentity::Key(key) if self.control.lists(&key))
    }

    /// Refuses a request for a node of the ledger if its sender must authenticate and has not.
    pub(crate) fn check_reads_ledger(&self) -> Result<(), ApiError> {
        match (&self.identity, self.control.mode()) {
            (CallerIdentity::Anonymous(_), AccessMode::LedgerKeys) => {
                Err(AccessError::NoLedgerKey.into())
            }
            _ => Ok(()),
        }
    }

    /// Refuses a request that selects a service of others, or no service, which means all of them.
    pub(crate) fn check_selected(&self, service_id: Option<&ServiceId>) -> Result<(), ApiError> {
        match service_id {
            Some(service_id) => self.check(service_id),
            None if self.may_all() => Ok(()),
            None => Err(AccessError::OnlyForAllServices.into()),
        }
    }

    /// Refuses to give a token scopes that the caller does not have for all services. Without authorization, no one may
    /// do that: the token would be valid when authorization is configured.
    pub(crate) fn check_grants(&self, scopes: &BTreeSet<AccessScope>) -> Result<(), ApiError> {
        let grants = self.control.grants_of(&self.identity);
        let is_missing = |scope: &&AccessScope| {
            services_of(&grants, **scope).is_none_or(|services| services != Services::All)
        };
        match scopes.iter().find(is_missing) {
            _ if self.authorized_name().is_none() => Err(AccessError::NoTokenToCreateOne.into()),
            _ if !self.token_rules().may_send.is_empty() => {
                Err(AccessError::LimitedTokenCreatesNone.into())
            }
            Some(scope) => Err(AccessError::MissingScope(*scope).into()),
            None => Ok(()),
        }
    }

    /// The services for which the caller has a scope, as patterns; `None`: for none.
    pub(crate) fn patterns(&self, scope: AccessScope) -> Option<Vec<String>> {
        let services = match (&self.identity, self.control.mode()) {
            (CallerIdentity::Anonymous(_), AccessMode::LedgerKeys)
                if scope == AccessScope::Submit =>
            {
                None
            }
            (CallerIdentity::Anonymous(_), _) => Some(Services::All),
            (identity, _) => services_of(&self.control.grants_of(identity), scope),
        };
        Some(match services? {
            Services::All => vec!["*".to_owned()],
            Services::Some(patterns) => patterns.iter().map(ToString::to_string).collect(),
        })
    }

    /// What the caller's token may send from accounts.
    pub(crate) fn token_rules(&self) -> TokenRules {
        match &self.identity {
            CallerIdentity::Token { id, may_send, .. } => {
                TokenRules { id: id.to_string(), may_send: may_send.to_vec() }
            }
            CallerIdentity::Key(_) | CallerIdentity::Anonymous(_) => TokenRules::default(),
        }
    }

    /// Whether it may be about all services.
    pub(super) fn may_all(&self) -> bool {
        self.services == Services::All
    }

    /// The name that authorization has found, if there is one.
    pub(crate) fn authorized_name(&self) -> Option<String> {
        match self.identity {
            CallerIdentity::Anonymous(_) => None,
            CallerIdentity::Token { .. } | CallerIdentity::Key(_) => Some(self.name()),
        }
    }

    /// How the log names the caller.
    pub(crate) fn name(&self) -> String {
        match &self.identity {
            CallerIdentity::Token { id, name, .. } => format!("token {name} ({id})"),
            CallerIdentity::Key(key) => format!("key {key}"),
            CallerIdentity::Anonymous(_) => "anonymous".to_owned(),
        }
    }

    /// The client, if it has authenticated.
    pub(crate) fn client_id(&self) -> Option<ClientId> {
        match self.key() {
            ClientKey::Client(client) => Some(client),
            ClientKey::Address(_) => None,
        }
    }

    /// Who limits of clients count it for.
    pub(crate) fn key(&self) -> ClientKey {
        match self.identity {
            CallerIdentity::Token { id, .. } => ClientKey::Client(ClientId::Token(id)),
            CallerIdentity::Key(key) => ClientKey::Client(ClientId::Key(key)),
            CallerIdentity::Anonymous(address) => ClientKey::Address(address),
        }
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Caller {
    type Rejection = ApiError;

    async fn from_request_parts(request: &mut Parts, _state: &S) -> Result<Self, ApiError> {
        Self::of(request).cloned()
    }
}

impl fmt::Debug for ShownToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ShownToken")
    }
}
