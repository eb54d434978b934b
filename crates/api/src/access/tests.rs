use std::{collections::BTreeSet, sync::Arc, time::Duration};

use axum::http::Method;
use grid_batch_core::tokens::{AccessScope, NewToken, StoredToken, TokenId};
use grid_batch_core::{Clock, ManualClock, Timestamp};
use grid_batch_protocol::{CylinderToken, SigningKey};

use super::{
    AccessControl, AccessMode, AccessOptions, AccessToken, Caller,
    control::Authenticated,
    grant::{Services, services_of},
    routes::{Coverage, Needs, ROUTES, needs},
};

fn stored(token: &AccessToken, services: &[&str]) -> StoredToken {
    StoredToken {
        token: NewToken {
            id: token.id(),
            name: "ci".to_owned(),
            secret_hash: token.secret_hash(),
            scopes: [AccessScope::Read].into(),
            services: services.iter().map(|text| (*text).to_owned()).collect(),
            may_send: Vec::new(),
            expires_at: Some(Timestamp::from_micros(60_000_000)),
        },
        created_at: Timestamp::from_micros(0),
        last_used_at: None,
        revoked_at: None,
    }
}

fn control(keys: &[&str]) -> (AccessControl, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::at(Timestamp::from_micros(0)));
    let keys = keys.iter().map(|key| key.parse().unwrap()).collect();
    let options = AccessOptions { mode: AccessMode::Tokens, keys, ..AccessOptions::default() };
    (AccessControl::new(options, Arc::clone(&clock) as Arc<dyn Clock>), clock)
}

#[test]
fn token_is_accepted_until_it_expires_or_is_revoked() {
    let (control, clock) = control(&[]);
    let token = AccessToken::generate().unwrap();
    assert!(control.find_token(&token.secret()).is_none());
    control.set_tokens(vec![stored(&token, &["*"])]);
    assert!(control.find_token(&token.secret()).is_some());
    clock.advance(Duration::from_secs(59));
    assert!(control.find_token(&token.secret()).is_some());
    clock.advance(Duration::from_secs(1));
    assert!(control.find_token(&token.secret()).is_none(), "it was read before it expired");
    clock.set(Timestamp::from_micros(0));
    assert!(control.find_token(&token.secret()).is_some());
    control.set_tokens(Vec::new());
    assert!(control.find_token(&token.secret()).is_none());
}

/// A token that is revoked while its request arrives has its limits until the end of the request.
#[test]
fn revoked_token_keeps_its_limits() {
    let (control, _) = control(&[]);
    let token = AccessToken::generate().unwrap();
    let mut limited = stored(&token, &["*"]);
    limited.token.may_send = vec!["5ether/day".to_owned()];
    control.set_tokens(vec![limited]);
    let Authenticated { identity, .. } = control.find_token(&token.secret()).unwrap();
    control.set_tokens(Vec::new());
    let rules = Caller::new(identity, Services::All, control).token_rules();
    assert_eq!(rules.id, token.id().to_string());
    assert_eq!(rules.may_send, ["5ether/day"]);
}

#[test]
fn token_with_another_secret_is_refused() {
    let (control, _) = control(&[]);
    let token = AccessToken::generate().unwrap();
    control.set_tokens(vec![stored(&token, &["*"])]);
    let mut text = token.secret();
    let last = if text.ends_with('0') { "1" } else { "0" };
    text.replace_range(text.len() - 1.., last);
    assert!(control.find_token(&text).is_none());
}

#[test]
fn uses_are_told_once() {
    let (control, _) = control(&[]);
    let tokens = [(); 2].map(|()| AccessToken::generate().unwrap());
    control.set_tokens(tokens.iter().map(|token| stored(token, &["*"])).collect());
    control.find_token(&tokens[1].secret()).unwrap();
    // Reading the tokens again forgets no use.
    control.set_tokens(tokens.iter().map(|token| stored(token, &["*"])).collect());
    assert_eq!(control.take_used(), [tokens[1].id()]);
    assert_eq!(control.take_used(), <[TokenId; 0]>::default());
}

#[test]
fn token_with_unreadable_services_is_refused() {
    let (control, _) = control(&[]);
    let token = AccessToken::generate().unwrap();
    control.set_tokens(vec![stored(&token, &["two words"])]);
    assert!(control.find_token(&token.secret()).is_none());
}

#[test]
fn cylinder_token_has_the_rights_of_its_key() {
    let (key, other) = (SigningKey::from_seed(1), SigningKey::from_seed(2));
    let grants =
        ["submit@a::b", "submit+read@c::*"].map(|grant| format!("{}={grant}", key.public_key()));
    let (control, _) = control(&[&grants[0], &grants[1]]);
    let token = CylinderToken::new(&key);
    assert!(control.find_verified(token.as_str()).is_none());
    let verified = control.verify(token.as_str()).unwrap();
    assert!(control.find_verified(token.as_str()).is_some(), "it is verified once");

    let services = |scope| services_of(&verified.grants, scope);
    let has = |scope, service: &str| services(scope).unwrap().has(&service.parse().unwrap());
    assert!(has(AccessScope::Submit, "a::b") && has(AccessScope::Submit, "c::d"));
    assert!(has(AccessScope::Read, "c::d") && !has(AccessScope::Read, "a::b"));
    assert!(services(AccessScope::Operate).is_none());

    assert!(control.verify(CylinderToken::new(&other).as_str()).is_none());
    let forged = token.as_str().replacen('.', ".e30=.", 1);
    for text in ["", "..", "a.b.c", &forged, &token.as_str()[1..]] {
        assert!(control.verify(text).is_none(), "{text}");
    }
}

#[test]
fn forgotten_route_needs_most() {
    let all = |scope| Needs::Scope(scope, Coverage::All);
    for (method, path, expected) in [
        (Method::GET, Some("/forgotten"), all(AccessScope::Operate)),
        (Method::DELETE, Some("/batch_statuses"), all(AccessScope::Operate)),
        (Method::GET, None, Needs::Scope(AccessScope::Read, Coverage::Some)),
        (Method::POST, None, Needs::Scope(AccessScope::Read, Coverage::Some)),
        (Method::HEAD, Some("/health"), Needs::Health(Coverage::Some)),
        (Method::POST, Some("/batches"), Needs::Scope(AccessScope::Submit, Coverage::Some)),
        (Method::GET, Some("/batches"), all(AccessScope::Read)),
    ] {
        assert_eq!(needs(&method, path), expected, "{method} {path:?}");
    }
}

#[test]
fn table_has_no_route_twice() {
    let rows: BTreeSet<_> = ROUTES.iter().map(|(method, path, _)| (method, path)).collect();
    assert_eq!(rows.len(), ROUTES.len());
}
