use std::{net::IpAddr, sync::Arc};

use axum::{
    extract::{MatchedPath, Request},
    http::{StatusCode, request::Parts},
    response::{IntoResponse, Response},
};
use grid_batch_core::tokens::AccessScope;
use grid_batch_core::{Clock, Excerpt};
use log::{debug, warn};

use super::{
    AccessControl, AccessMode, Caller, HealthAccess,
    bearer::{Credential, cylinder_token},
    caller::CallerIdentity,
    control::Authenticated,
    grant::{Services, services_of},
    routes::{Coverage, Needs, needs},
};
use crate::{
    access::AccessError,
    http::{ApiError, Client, discard_body},
    rate_limits::{Buckets, LimitError, Rate, Rates},
};

/// Decides which requests are answered.
#[derive(Debug)]
pub(crate) struct Authorizer {
    control: AccessControl,
    rates: Arc<Rates>,
    /// What addresses may send that is wrong. Right tokens are not counted.
    failures: Buckets<IpAddr>,
    clock: Arc<dyn Clock>,
}

impl Authorizer {
    pub(crate) fn new(control: AccessControl, rates: Arc<Rates>, clock: Arc<dyn Clock>) -> Self {
        /// Wrong tokens of an address: one a second, and so many at once.
        const FAILURES: Rate = Rate {
            per_second: std::num::NonZero::<u32>::MIN,
            burst: std::num::NonZero::new(20).expect("it is not zero"),
        };
        Self { control, rates, failures: Buckets::new(FAILURES), clock }
    }

    /// Who sent the request, if it may be answered.
    fn check(&self, request: &Parts) -> Result<Caller, ApiError> {
        let path = request.extensions.get::<MatchedPath>().map(MatchedPath::as_str);
        let needs = needs(&request.method, path);
        let client = Client::of(request);
        let caller = match needs {
            Needs::Nothing => self.anonymous(client),
            _ if self.control.mode() == AccessMode::Open => self.anonymous(client),
            _ if self.control.mode() == AccessMode::LedgerKeys => {
                self.with_ledger_key(request, path, needs)?
            }
            Needs::Health(_) if self.may_read_health(client) => self.anonymous(client),
            Needs::Health(coverage) => self.with_scope(request, AccessScope::Read, coverage)?,
            Needs::Scope(scope, coverage) => self.with_scope(request, scope, coverage)?,
        };
        if matches!(needs, Needs::Scope(AccessScope::Submit, _)) {
            self.rates.begin_of_client(caller.key()).map_err(LimitError::RateOfClient)?;
        }
        Ok(caller)
    }

    /// A request that reaches the ledger needs a key; others need nothing.
    fn with_ledger_key(
        &self,
        request: &Parts,
        path: Option<&str>,
        needs: Needs,
    ) -> Result<Caller, ApiError> {
        let is_of_ledger = path.is_some_and(|path| path.starts_with("/scabbard/"));
        let scope = match needs {
            Needs::Scope(AccessScope::Submit, _) => AccessScope::Submit,
            Needs::Scope(scope, _) if is_of_ledger => scope,
            // A request without a route may be passed through to a node, if its sender has a key.
            _ if path.is_none() && cylinder_token(&request.headers).is_some() => AccessScope::Read,
            _ => return Ok(self.anonymous(Client::of(request))),
        };
        let token = cylinder_token(&request.headers).ok_or(AccessError::NoLedgerKey)?;
        let client = self.authenticate(request)?;
        match client.identity {
            CallerIdentity::Key(key) if !self.control.lists(&key) => {
                Ok(Caller::of_ledger_key(key, token, self.control.clone()))
            }
            _ => self.caller(client, scope),
        }
    }

    /// The client as a caller, if it has been granted the scope.
    fn caller(&self, client: Authenticated, scope: AccessScope) -> Result<Caller, ApiError> {
        let Authenticated { identity, grants } = client;
        let services = services_of(&grants, scope).ok_or(AccessError::MissingScope(scope))?;
        Ok(Caller::new(identity, services, self.control.clone()))
    }

    fn anonymous(&self, client: Option<&Client>) -> Caller {
        let identity = CallerIdentity::Anonymous(counted_address(client));
        Caller::new(identity, Services::All, self.control.clone())
    }

    fn may_read_health(&self, client: Option<&Client>) -> bool {
        match self.control.health() {
            HealthAccess::Token => false,
            HealthAccess::Local => client.is_some_and(|client| client.is_local),
            HealthAccess::Everyone => true,
        }
    }

    fn with_scope(
        &self,
        request: &Parts,
        scope: AccessScope,
        coverage: Coverage,
    ) -> Result<Caller, ApiError> {
        let caller = self.caller(self.authenticate(request)?, scope)?;
        if coverage == Coverage::Some || caller.may_all() {
            Ok(caller)
        } else {
            Err(AccessError::OnlyForAllServices.into())
        }
    }

    fn authenticate(&self, request: &Parts) -> Result<Authenticated, ApiError> {
        let address = counted_address(Client::of(request));
        let known = match Credential::of(&request.headers) {
            Credential::Missing => return Err(AccessError::NotAuthenticated.into()),
            Credential::Token(token) => self.control.find_token(token),
            Credential::Cylinder(token) => match self.control.find_verified(token) {
                Some(known) => Some(known),
                // Checking a signature is expensive.
                None => {
                    self.failures
                        .has_one(&address, self.clock.monotonic())
                        .map_err(AccessError::TooManyWrongTokens)?;
                    self.control.verify(token)
                }
            },
            Credential::Unreadable => None,
        };
        known.ok_or_else(|| self.refuse(address))
    }

    /// Counts a key that a node refuses as a wrong token: each new one costs a request to the node.
    fn count_refused_key(&self, address: IpAddr) {
        let _ = self.failures.take(&address, self.clock.monotonic());
    }

    fn refuse(&self, address: IpAddr) -> ApiError {
        match self.failures.take(&address, self.clock.monotonic()) {
            Ok(()) => {
                warn!(address:%; "a request with a token that is not valid was refused");
                AccessError::InvalidToken.into()
            }
            Err(wait) => AccessError::TooManyWrongTokens(wait).into(),
        }
    }
}

fn counted_address(client: Option<&Client>) -> IpAddr {
    client.map_or(IpAddr::from([0, 0, 0, 0]), Client::counted_address)
}

/// Refuses requests that are not allowed, and tells the handlers of the others who sent them.
pub(crate) async fn authorize<R: Future<Output = Response>>(
    authorizer: &Authorizer,
    request: Request,
    next: impl FnOnce(Request) -> R,
) -> Response {
    let (mut parts, body) = request.into_parts();
    match authorizer.check(&parts) {
        Ok(caller) => {
            debug!(caller = caller.name().as_str(), path:% = Excerpt::of(parts.uri.path());
                "request allowed");
            let asked = caller.ledger_key().map(|_| counted_address(Client::of(&parts)));
            parts.extensions.insert(caller);
            let response = next(Request::from_parts(parts, body)).await;
            if let Some(address) = asked.filter(|_| response.status() == StatusCode::UNAUTHORIZED) {
                authorizer.count_refused_key(address);
            }
            response
        }
        Err(error) => {
            discard_body(&parts.headers, body);
            error.into_response()
        }
    }
}
