use std::{
    collections::HashMap,
    mem,
    sync::{
        Arc, Mutex, PoisonError, RwLock,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

use grid_batch_core::batches::SignerId;
use grid_batch_core::tokens::{StoredToken, TokenId};
use grid_batch_core::{Clock, Timestamp};
use grid_batch_protocol::CylinderToken;
use grid_batch_support::{BoundedMap, lock};
use log::warn;
use sha2::{Digest, Sha256};

use super::{
    AccessMode, AccessToken, HealthAccess, KeyGrant,
    caller::CallerIdentity,
    grant::{Grant, Services},
};

/// Which tokens and keys are known, and what they allow. Clones share it.
///
/// It reads no database: it knows the tokens of the last call of [`set_tokens`](Self::set_tokens).
#[derive(Debug, Clone)]
pub struct AccessControl(Arc<Shared>);

/// What is configured of access.
#[derive(Debug, Clone, Default)]
pub struct AccessOptions {
    /// What requests must authenticate with.
    pub mode: AccessMode,
    /// Who may read the health without a token.
    pub health: HealthAccess,
    /// What the keys of Cylinder tokens may do.
    pub keys: Vec<KeyGrant>,
}

#[derive(Debug)]
struct Shared {
    mode: AccessMode,
    health: HealthAccess,
    keys: HashMap<SignerId, Arc<[Grant]>>,
    tokens: RwLock<HashMap<TokenId, KnownToken>>,
    /// The keys of Cylinder tokens that were verified, by the hash of the token. A key has one token, for ever.
    verified: Mutex<BoundedMap<[u8; 32], SignerId>>,
    clock: Arc<dyn Clock>,
}

#[derive(Debug)]
struct KnownToken {
    name: Arc<str>,
    secret_hash: [u8; 32],
    grants: Arc<[Grant]>,
    may_send: Arc<[String]>,
    expires_at: Option<Timestamp>,
    /// Since this was asked last.
    was_used: AtomicBool,
}

/// A client that has authenticated.
#[derive(Debug, Clone)]
pub(super) struct Authenticated {
    pub(super) identity: CallerIdentity,
    pub(super) grants: Arc<[Grant]>,
}

impl AccessControl {
    const VERIFIED: usize = 10_000;

    /// An access control that knows no tokens yet.
    pub fn new(options: AccessOptions, clock: Arc<dyn Clock>) -> Self {
        let mut keys: HashMap<SignerId, Vec<Grant>> = HashMap::new();
        for KeyGrant { key, scopes, services } in options.keys {
            let services = Services::of([services]);
            keys.entry(key).or_default().push(Grant { scopes, services });
        }
        Self(Arc::new(Shared {
            mode: options.mode,
            health: options.health,
            keys: keys.into_iter().map(|(key, grants)| (key, grants.into())).collect(),
            tokens: RwLock::default(),
            verified: Mutex::new(BoundedMap::new(Self::VERIFIED)),
            clock,
        }))
    }

    /// Replaces what is known of tokens. Those that are not among them are not accepted any more.
    pub fn set_tokens(&self, tokens: Vec<StoredToken>) {
        let now = self.0.clock.now();
        let active = tokens.into_iter().filter(|stored| stored.is_active(now));
        let mut known: HashMap<TokenId, KnownToken> = active.filter_map(known_token).collect();
        let mut tokens = self.0.tokens.write().unwrap_or_else(PoisonError::into_inner);
        for (id, before) in tokens.iter() {
            if let Some(token) = known.get_mut(id) {
                token.was_used = AtomicBool::new(before.was_used.load(Relaxed));
            }
        }
        let _ = mem::replace(&mut *tokens, known);
    }

    /// The tokens that were used since this was called last.
    pub fn take_used(&self) -> Vec<TokenId> {
        let tokens = self.0.tokens.read().unwrap_or_else(PoisonError::into_inner);
        let used = tokens.iter().filter(|(_, token)| token.was_used.swap(false, Relaxed));
        used.map(|(id, _)| *id).collect()
    }

    pub(super) fn mode(&self) -> AccessMode {
        self.0.mode
    }

    pub(super) fn health(&self) -> HealthAccess {
        self.0.health
    }

    /// Who has this token.
    pub(super) fn find_token(&self, text: &str) -> Option<Authenticated> {
        let token: AccessToken = text.parse().ok()?;
        let tokens = self.0.tokens.read().unwrap_or_else(PoisonError::into_inner);
        let known = tokens.get(&token.id())?;
        if !is_same(&known.secret_hash, &token.secret_hash()) {
            return None;
        }
        if self.is_expired(known) {
            return None;
        }
        if !known.was_used.load(Relaxed) {
            known.was_used.store(true, Relaxed);
        }
        let identity = CallerIdentity::Token {
            id: token.id(),
            name: Arc::clone(&known.name),
            may_send: Arc::clone(&known.may_send),
        };
        Some(Authenticated { identity, grants: Arc::clone(&known.grants) })
    }

    /// What a client may do that has authenticated.
    pub(super) fn grants_of(&self, identity: &CallerIdentity) -> Arc<[Grant]> {
        match identity {
            CallerIdentity::Token { id, .. } => {
                let tokens = self.0.tokens.read().unwrap_or_else(PoisonError::into_inner);
                tokens.get(id).map(|known| Arc::clone(&known.grants)).unwrap_or_default()
            }
            CallerIdentity::Key(key) => self.0.keys.get(key).cloned().unwrap_or_default(),
            CallerIdentity::Anonymous(_) => Arc::default(),
        }
    }

    /// Whether a token that was found before is still valid.
    pub(super) fn knows_token(&self, id: TokenId) -> bool {
        let tokens = self.0.tokens.read().unwrap_or_else(PoisonError::into_inner);
        tokens.get(&id).is_some_and(|known| !self.is_expired(known))
    }

    fn is_expired(&self, known: &KnownToken) -> bool {
        known.expires_at.is_some_and(|expiry| self.0.clock.now() >= expiry)
    }

    /// Who has this Cylinder token, if it was verified before.
    pub(super) fn find_verified(&self, text: &str) -> Option<Authenticated> {
        let key = *lock(&self.0.verified).get(&hash(text))?;
        self.of_key(key)
    }

    /// Verifies a Cylinder token of a key that may be accepted.
    pub(super) fn verify(&self, text: &str) -> Option<Authenticated> {
        if self.0.keys.is_empty() && self.0.mode == AccessMode::Tokens {
            return None;
        }
        let key = CylinderToken::verify(text).ok()?.id();
        let authenticated = self.of_key(key)?;
        lock(&self.0.verified).get_or_insert_with(&hash(text), || key);
        Some(authenticated)
    }

    /// What the settings allow the key; `None` if the ledger decides.
    fn of_key(&self, key: SignerId) -> Option<Authenticated> {
        let grants = match self.0.keys.get(&key) {
            Some(grants) => Arc::clone(grants),
            None if self.0.mode == AccessMode::LedgerKeys => Arc::default(),
            None => return None,
        };
        Some(Authenticated { identity: CallerIdentity::Key(key), grants })
    }

    /// Whether the settings say what this key may do. Otherwise the ledger decides.
    pub(super) fn lists(&self, key: &SignerId) -> bool {
        self.0.keys.contains_key(key)
    }
}

fn known_token(stored: StoredToken) -> Option<(TokenId, KnownToken)> {
    let token = stored.token;
    let services: Result<Vec<_>, _> = token.services.iter().map(|text| text.parse()).collect();
    let services = match services {
        Ok(services) => Services::of(services),
        Err(error) => {
            warn!(token:% = token.id, error:%; "a token is not accepted: its services cannot be read");
            return None;
        }
    };
    let known = KnownToken {
        name: token.name.into(),
        secret_hash: token.secret_hash,
        grants: [Grant { scopes: token.scopes, services }].into(),
        may_send: token.may_send.into(),
        expires_at: token.expires_at,
        was_used: AtomicBool::new(false),
    };
    Some((token.id, known))
}

/// Takes the same time wherever the first difference is.
fn is_same(left: &[u8; 32], right: &[u8; 32]) -> bool {
    let difference = left.iter().zip(right).fold(0, |all, (left, right)| all | (left ^ right));
    std::hint::black_box(difference) == 0
}

fn hash(text: &str) -> [u8; 32] {
    Sha256::digest(text).into()
}
