use grid_batch_core::Timestamp;
use grid_batch_core::tokens::{AccessScope, NewToken, StoredToken};

use crate::http::json_types;

json_types! {
    /// A token, without its secret.
    pub(super) struct TokenJson(token: &NewToken) {
        id: String = token.id.to_string(),
        name: String = token.name.clone(),
        scopes: Vec<&'static str> = token.scopes.iter().copied().map(AccessScope::as_str).collect(),
        /// Service ids, with `*` for any characters.
        services: Vec<String> = token.services.clone(),
        /// What it may send from accounts, if it may not send all that these may.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        may_send: Vec<String> = token.may_send.clone(),
        /// Null: never.
        expires_at: Option<String> = token.expires_at.map(Timestamp::rfc3339),
    }

    /// A stored token.
    pub(super) struct StoredTokenJson(stored: &StoredToken, now: Timestamp) {
        #[serde(flatten)]
        token: TokenJson = TokenJson::new(&stored.token),
        created_at: String = stored.created_at.rfc3339(),
        /// To a few minutes.
        last_used_at: Option<String> = stored.last_used_at.map(Timestamp::rfc3339),
        revoked_at: Option<String> = stored.revoked_at.map(Timestamp::rfc3339),
        /// Whether it is neither revoked nor expired.
        accepted: bool = stored.is_active(now),
    }
}
