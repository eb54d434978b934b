//! Who may do what: tokens and keys of clients, and what each route needs.

mod access_token;
mod bearer;
mod caller;
mod control;
mod error;
mod grant;
mod key_grant;
mod middleware;
mod policy;
#[cfg(test)]
mod reference;
mod routes;
mod stored_tokens;
#[cfg(test)]
mod tests;

pub use access_token::{AccessToken, AccessTokenError};
pub(crate) use bearer::cylinder_token;
pub(crate) use caller::Caller;
pub use control::{AccessControl, AccessOptions};
pub(crate) use error::AccessError;
pub use key_grant::{KeyGrant, KeyGrantError};
pub(crate) use middleware::{Authorizer, authorize};
pub use policy::{AccessMode, AccessModeError, HealthAccess, HealthAccessError};
#[cfg(test)]
pub(crate) use routes::routes_of_table;
pub use stored_tokens::StoredTokens;
