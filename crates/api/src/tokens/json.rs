use grid_batch_core::Timestamp;
use grid_batch_core::tokens::{AccessScope, NewToken, StoredToken};
use serde::Serialize;
use utoipa::ToSchema;

/// A token, without its secret.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct TokenJson {
    id: String,
    name: String,
    scopes: Vec<&'static str>,
    /// Service ids, with `*` for any characters.
    services: Vec<String>,
    /// Null: never.
    expires_at: Option<String>,
}

impl From<NewToken> for TokenJson {
    fn from(token: NewToken) -> Self {
        Self {
            id: token.id.to_string(),
            name: token.name,
            scopes: token.scopes.into_iter().map(AccessScope::as_str).collect(),
            services: token.services,
            expires_at: token.expires_at.map(Timestamp::rfc3339),
        }
    }
}

/// A stored token.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct StoredTokenJson {
    #[serde(flatten)]
    token: TokenJson,
    created_at: String,
    /// To a few minutes.
    last_used_at: Option<String>,
    revoked_at: Option<String>,
    /// Whether it is neither revoked nor expired.
    accepted: bool,
}

impl StoredTokenJson {
    pub(super) fn new(stored: StoredToken, now: Timestamp) -> Self {
        Self {
            accepted: stored.is_active(now),
            created_at: stored.created_at.rfc3339(),
            last_used_at: stored.last_used_at.map(Timestamp::rfc3339),
            revoked_at: stored.revoked_at.map(Timestamp::rfc3339),
            token: stored.token.into(),
        }
    }
}
