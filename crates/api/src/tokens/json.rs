use grid_batch_core::Timestamp;
use grid_batch_core::tokens::{AccessScope, NewToken, StoredToken};

use crate::http::{Time, json_types};

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
        expires_at: Option<Time> = token.expires_at.map(Time),
    }

    /// A stored token.
    pub(super) struct StoredTokenJson(stored: &StoredToken, now: Timestamp) {
        #[serde(flatten)]
        token: TokenJson = TokenJson::new(&stored.token),
        created_at: Time = Time(stored.created_at),
        /// To a few minutes.
        last_used_at: Option<Time> = stored.last_used_at.map(Time),
        revoked_at: Option<Time> = stored.revoked_at.map(Time),
        /// Whether it is neither revoked nor expired.
        accepted: bool = stored.is_active(now),
    }
}
