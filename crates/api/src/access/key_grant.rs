use std::{collections::BTreeSet, str::FromStr};

use grid_batch_core::batches::SignerId;
use grid_batch_core::tokens::{AccessScope, AccessScopeError};
use grid_batch_protocol::{PublicKey, PublicKeyError};
use grid_batch_support::{ServicePattern, ServicePatternError};
use thiserror::Error;

/// What a key may do whose owner sends a Cylinder token: `KEY=SCOPES@SERVICES`.
///
/// Scopes are separated by `+`. The services are one pattern; a key can be given several times.
///
/// ```
/// use grid_batch_api::KeyGrant;
///
/// let key = "02c6047f9441ed7d6d3045406e95c07cd85c778e4b8cef3ca7abac09b95c709ee5";
/// let grant: KeyGrant = format!("{key}=submit+read@abcDE-*::gs*").parse()?;
/// assert_eq!(grant.scopes.len(), 2);
/// assert!(format!("{key}=submit").parse::<KeyGrant>().is_err());
/// # Ok::<(), grid_batch_api::KeyGrantError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyGrant {
    /// The public key.
    pub key: SignerId,
    /// What it may do.
    pub scopes: BTreeSet<AccessScope>,
    /// For which services.
    pub services: ServicePattern,
}

/// Why a text is not a [`KeyGrant`].
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum KeyGrantError {
    /// A part is missing.
    #[error("each item must be KEY=SCOPES@SERVICES, such as 02ab...=submit+read@*")]
    Form,
    /// The key is not one.
    #[error(transparent)]
    Key(#[from] PublicKeyError),
    /// A scope is not one.
    #[error(transparent)]
    Scope(#[from] AccessScopeError),
    /// The services are not a pattern.
    #[error(transparent)]
    Services(#[from] ServicePatternError),
}

impl FromStr for KeyGrant {
    type Err = KeyGrantError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (key, rest) = text.split_once('=').ok_or(KeyGrantError::Form)?;
        let (scopes, services) = rest.split_once('@').ok_or(KeyGrantError::Form)?;
        let key: PublicKey = key.trim().parse()?;
        let scopes = scopes.split('+').map(|scope| scope.trim().parse());
        Ok(Self {
            key: key.id(),
            scopes: scopes.collect::<Result<_, _>>()?,
            services: services.trim().parse()?,
        })
    }
}
