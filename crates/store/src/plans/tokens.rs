use grid_batch_core::operators::OperatorRequest;
use grid_batch_core::tokens::{AccessScope, NewToken, TokenId, TokenStore};

use crate::Store;

/// Stores a token, notes its use, and revokes it.
pub(super) fn use_tokens(store: &Store) {
    let token = NewToken {
        id: TokenId::from_bytes([1; 8]),
        name: "of a client".to_owned(),
        secret_hash: [2; 32],
        scopes: [AccessScope::Read].into(),
        services: vec!["*".to_owned()],
        may_send: Vec::new(),
        expires_at: None,
    };
    assert!(store.create_token(&token, &OperatorRequest::program()).unwrap());
    store.note_token_use(&[token.id]).unwrap();
    assert!(store.revoke_token(&token.name, &OperatorRequest::program()).unwrap().is_some());
}
