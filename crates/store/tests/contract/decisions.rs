//! Decisions about tokens, webhooks and the database are logged in their commit. A dry run changes nothing.

use grid_batch_core::events::EventFilter;
use grid_batch_core::ledger::LedgerIdentity;
use grid_batch_core::operators::{
    ActionFilter, ActionSource, Operator, OperatorRequest, OperatorStore, OperatorTarget,
    OperatorVerb,
};
use grid_batch_core::tokens::{AccessScope, NewToken, TokenId, TokenStore};
use grid_batch_core::webhooks::{NewWebhook, WebhookId, WebhookSecret, WebhookStore};
use grid_batch_store::Store;

use crate::fixture::{Database, StoreExt, batch, on_both};

on_both! {
    decisions_are_logged_with_their_reasons,
    dry_runs_of_decisions_change_and_log_nothing,
    refused_decisions_are_not_logged,
}

fn request(dry_run: bool) -> OperatorRequest {
    let operator =
        Operator { name: "alice".to_owned(), source: ActionSource::Http, instance: None };
    OperatorRequest { operator, reason: Some("because".to_owned()), dry_run }
}

fn token(name: &str) -> NewToken {
    NewToken {
        id: TokenId::from_bytes([1; 8]),
        name: name.to_owned(),
        secret_hash: [2; 32],
        scopes: [AccessScope::Read].into(),
        services: vec!["*".to_owned()],
        may_send: Vec::new(),
        expires_at: None,
    }
}

fn webhook() -> NewWebhook {
    let secret = WebhookSecret::new(vec![1]);
    let url = "https://example.com/events?secret=5".to_owned();
    NewWebhook { url, secret, filter: EventFilter::default() }
}

/// The verbs, targets and changes of the log, the first action first.
fn logged(store: &Store) -> Vec<(OperatorVerb, OperatorTarget, String, String)> {
    let mut actions = store.actions(&ActionFilter::default(), None, 100).unwrap();
    actions.reverse();
    let read = actions.into_iter().map(|it| {
        assert_eq!((it.action.reason.as_deref(), it.action.dry_run), (Some("because"), false));
        assert_eq!(it.action.operator, request(false).operator);
        (it.action.verb, it.action.target, it.before, it.after)
    });
    read.collect()
}

fn decide_all(db: &Database, store: &Store, asked: &OperatorRequest) -> WebhookId {
    assert!(store.create_token(&token("ci"), asked).unwrap());
    let _ = store.revoke_token("ci", asked).unwrap();
    let id = store.create_webhook(&webhook(), asked).unwrap().unwrap().id;
    let _ = store.redeliver(id, None, asked).unwrap();
    let _ = store.remove_webhook(id, asked).unwrap();
    store.rebind_ledger(&LedgerIdentity::new("sawtooth"), asked).unwrap();
    db.restored().mark_restored(false, asked).unwrap();
    db.restored().mark_moved(asked).unwrap();
    id
}

fn decisions_are_logged_with_their_reasons(db: &Database) {
    let store = db.open();
    store.add_all(&[batch("a::b", 1)]);
    let webhook = OperatorTarget::Webhook(decide_all(db, &store, &request(false)));
    let token = OperatorTarget::Token(TokenId::from_bytes([1; 8]));
    let entry = |verb, target: &OperatorTarget, before: &str, after: &str| {
        (verb, target.clone(), before.to_owned(), after.to_owned())
    };
    let (host, database) = ("https://example.com", OperatorTarget::Database);
    let sent = "enabled; 0 messages are sent once more";
    assert_eq!(
        logged(&store),
        [
            entry(OperatorVerb::CreateToken, &token, "does not exist", "ci: read for *"),
            entry(OperatorVerb::RevokeToken, &token, "ci: read for *", "revoked"),
            entry(OperatorVerb::CreateWebhook, &webhook, "does not exist", host),
            entry(OperatorVerb::Redeliver, &webhook, "0 messages were given up", sent),
            entry(OperatorVerb::RemoveWebhook, &webhook, host, "removed"),
            entry(OperatorVerb::AdoptLedger, &database, "bound to no ledger", "bound to sawtooth"),
            entry(
                OperatorVerb::Restored,
                &database,
                "restored",
                "1 batches of 1 services are in doubt"
            ),
            entry(OperatorVerb::Moved, &database, "moved", "nothing was lost"),
        ]
    );
}

fn dry_runs_of_decisions_change_and_log_nothing(db: &Database) {
    let store = db.open();
    store.add_all(&[batch("a::b", 1)]);
    let before = store.one("a::b", 1);
    decide_all(db, &store, &request(true));
    assert_eq!(store.tokens(None, 9).unwrap(), []);
    assert_eq!(store.webhooks().unwrap(), []);
    assert_eq!(store.ledger().unwrap(), None);
    assert_eq!(store.one("a::b", 1), before);
    assert_eq!(logged(&store), []);

    store.create_token(&token("ci"), &request(false)).unwrap();
    assert!(store.revoke_token("ci", &request(true)).unwrap().is_some());
    assert_eq!(store.unrevoked_tokens().unwrap().len(), 1);
    let id = store.create_webhook(&webhook(), &request(false)).unwrap().unwrap().id;
    assert!(store.remove_webhook(id, &request(true)).unwrap());
    assert_eq!(store.webhooks().unwrap().len(), 1);
    assert_eq!(logged(&store).len(), 2);
}

fn refused_decisions_are_not_logged(db: &Database) {
    let store = db.open();
    let asked = request(false);
    assert!(store.create_token(&token("ci"), &asked).unwrap());
    assert!(!store.create_token(&token("ci"), &asked).unwrap());
    assert_eq!(store.revoke_token("other", &asked).unwrap(), None);
    assert!(!store.remove_webhook(WebhookId(9), &asked).unwrap());
    assert_eq!(store.redeliver(WebhookId(9), None, &asked).unwrap(), None);
    assert_eq!(logged(&store).len(), 1);
}
