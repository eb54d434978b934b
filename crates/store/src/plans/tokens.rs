use grid_batch_core::TokenId;

use crate::Store;

/// Notes the use of a token, and revokes one.
pub(super) fn use_tokens(store: &Store) {
    store.note_token_use(&[TokenId::from_bytes([1; 8])]).unwrap();
    assert!(!store.revoke_token("none").unwrap());
}
