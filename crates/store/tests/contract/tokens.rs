use grid_batch_core::Timestamp;
use grid_batch_core::tokens::{AccessScope, NewToken, TokenId, TokenStore};

use crate::fixture::{Database, by_program, on_both};

on_both! {
    token_is_stored_as_it_was_created,
    name_of_a_revoked_token_can_be_used_again,
    revoked_token_is_not_among_those_that_work,
    uses_of_tokens_are_noted,
    tokens_are_listed_in_pages,
}

fn token(number: u8, name: &str) -> NewToken {
    NewToken {
        id: TokenId::from_bytes([number; 8]),
        name: name.to_owned(),
        secret_hash: [number; 32],
        scopes: [AccessScope::Submit, AccessScope::Operate].into(),
        services: vec!["a::b".to_owned(), "c*".to_owned()],
        may_send: vec!["0xaa/0xa9059cbb".to_owned(), "5ether/day".to_owned()],
        expires_at: None,
    }
}

fn token_is_stored_as_it_was_created(db: &Database) {
    let store = db.open();
    let expires_at = Some(Timestamp::from_micros(5_000_000));
    let new = NewToken { expires_at, ..token(1, "ci") };
    assert!(store.create_token(&new, &by_program()).unwrap());
    let stored = store.tokens(None, 10).unwrap().remove(0);
    assert_eq!((&stored.token, stored.created_at), (&new, db.now()));
    assert_eq!((stored.last_used_at, stored.revoked_at), (None, None));
    assert!(stored.is_active(Timestamp::from_micros(4_999_999)));
    assert!(!stored.is_active(Timestamp::from_micros(5_000_000)));
}

fn name_of_a_revoked_token_can_be_used_again(db: &Database) {
    let store = db.open();
    assert!(store.create_token(&token(1, "ci"), &by_program()).unwrap());
    assert!(!store.create_token(&token(2, "ci"), &by_program()).unwrap());
    assert!(!store.create_token(&token(1, "other"), &by_program()).unwrap());
    assert!(store.revoke_token("ci", &by_program()).unwrap().is_some());
    assert!(store.create_token(&token(2, "ci"), &by_program()).unwrap());
}

fn revoked_token_is_not_among_those_that_work(db: &Database) {
    let store = db.open();
    for (number, name) in [(1, "one"), (2, "two"), (3, "three")] {
        store.create_token(&token(number, name), &by_program()).unwrap();
    }
    assert!(
        store
            .revoke_token(&TokenId::from_bytes([2; 8]).to_string(), &by_program())
            .unwrap()
            .is_some()
    );
    assert!(store.revoke_token("two", &by_program()).unwrap().is_none());
    assert!(store.revoke_token("four", &by_program()).unwrap().is_none());
    let names: Vec<String> =
        store.unrevoked_tokens().unwrap().into_iter().map(|stored| stored.token.name).collect();
    assert_eq!(names, ["one", "three"]);
    let all = store.tokens(None, 10).unwrap();
    let revoked: Vec<bool> = all.iter().map(|stored| stored.revoked_at.is_some()).collect();
    assert_eq!(revoked, [false, true, false]);
}

fn uses_of_tokens_are_noted(db: &Database) {
    let store = db.open();
    store.create_token(&token(1, "one"), &by_program()).unwrap();
    store.create_token(&token(2, "two"), &by_program()).unwrap();
    db.later(60);
    store.note_token_use(&[]).unwrap();
    store.note_token_use(&[[2; 8], [9; 8]].map(TokenId::from_bytes)).unwrap();
    let all = store.tokens(None, 10).unwrap();
    let used: Vec<_> = all.iter().map(|stored| stored.last_used_at).collect();
    assert_eq!(used, [None, Some(db.now())]);
}

fn tokens_are_listed_in_pages(db: &Database) {
    let store = db.open();
    for number in 1..=3 {
        store.create_token(&token(number, &format!("token {number}")), &by_program()).unwrap();
    }
    let first = store.tokens(None, 2).unwrap();
    assert_eq!(first.len(), 2);
    let rest = store.tokens(Some(first[1].token.id), 2).unwrap();
    assert_eq!(
        rest.into_iter().map(|stored| stored.token).collect::<Vec<_>>(),
        [token(3, "token 3")]
    );
}
