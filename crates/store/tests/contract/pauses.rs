//! A pause of a service, or of all: nothing new is taken, and what is under way is followed.

use grid_batch_core::{
    ActionOutcome, ActionRefusal, InstanceId, LedgerStatus, Obstacle, Operator, OperatorAction,
    OperatorTarget, OperatorVerb, Outcome, Timestamp,
};
use grid_batch_store::Store;

use crate::fixture::{Database, StoreExt, batch, id, on_both, service};

on_both! {
    paused_service_gives_no_batch,
    pause_of_all_holds_for_new_services_and_instances,
    batch_under_way_is_followed_during_a_pause,
    pause_outlasts_a_takeover,
    pause_is_why_a_batch_waits,
    paused_services_are_counted,
    reasons_of_pauses_are_told,
    last_instance_does_not_drain,
    claim_is_released_unless_a_batch_is_with_a_submitter,
}

fn act(store: &Store, verb: OperatorVerb, target: OperatorTarget) -> ActionOutcome {
    let reason = Some("maintenance".to_owned());
    let operator = Operator::program();
    store.act(&OperatorAction { verb, target, reason, operator, dry_run: false }).unwrap()
}

fn pause(store: &Store, target: OperatorTarget) {
    let outcome = act(store, OperatorVerb::Pause, target.clone());
    assert!(matches!(outcome, ActionOutcome::Done(_)), "{outcome:?}");
    let again = act(store, OperatorVerb::Pause, target);
    assert_eq!(again, ActionOutcome::Refused(ActionRefusal::AlreadyPaused));
}

fn resume(store: &Store, target: OperatorTarget) {
    let outcome = act(store, OperatorVerb::Resume, target.clone());
    assert!(matches!(outcome, ActionOutcome::Done(_)), "{outcome:?}");
    let again = act(store, OperatorVerb::Resume, target);
    assert_eq!(again, ActionOutcome::Refused(ActionRefusal::NotPaused));
}

fn of(name: &str) -> OperatorTarget {
    OperatorTarget::Service(service(name))
}

fn paused_service_gives_no_batch(db: &Database) {
    let store = db.open();
    store.add_all(&[batch("a::b", 1), batch("c::d", 2)]);
    pause(&store, of("a::b"));
    let unknown = act(&store, OperatorVerb::Pause, of("x::y"));
    assert_eq!(unknown, ActionOutcome::NotFound);
    store.worker_of_all();
    assert_eq!(store.ready_services(None, 10).unwrap(), [service("c::d")]);
    assert_eq!(store.take(&["a::b", "c::d"]).len(), 1);
    resume(&store, of("a::b"));
    assert_eq!(store.ready_services(None, 10).unwrap(), [service("a::b")]);
    assert_eq!(store.take_one("a::b").batch_id, id(1));
}

fn pause_of_all_holds_for_new_services_and_instances(db: &Database) {
    let store = db.open();
    store.add_all(&[batch("a::b", 1)]);
    store.worker_of_all();
    pause(&store, OperatorTarget::AllServices);
    store.add_all(&[batch("c::d", 2)]);
    store.worker_of_all();
    assert_eq!(store.ready_services(None, 10).unwrap(), []);
    assert!(store.take(&["a::b", "c::d"]).is_empty());
    store.worker().release().unwrap();
    store.worker().register_again().unwrap();
    store.worker_of_all();
    assert!(store.take(&["a::b", "c::d"]).is_empty());
    // The pause of one service is another one.
    pause(&store, of("a::b"));
    resume(&store, OperatorTarget::AllServices);
    assert_eq!(store.ready_services(None, 10).unwrap(), [service("c::d")]);
    assert_eq!(store.take(&["a::b", "c::d"]).len(), 1);
}

fn batch_under_way_is_followed_during_a_pause(db: &Database) {
    let store = db.open();
    store.add_all(&[batch("a::b", 1), batch("a::b", 2)]);
    let taken = store.take_one("a::b");
    pause(&store, of("a::b"));
    store.outcome(&taken, Outcome::Accepted);
    store.status(&taken, LedgerStatus::Committed);
    assert!(store.one("a::b", 1).progress.state.is_terminal());
    assert!(store.take(&["a::b"]).is_empty());
    resume(&store, of("a::b"));
    assert_eq!(store.take_one("a::b").batch_id, id(2));
}

fn pause_outlasts_a_takeover(db: &Database) {
    let store = db.open();
    store.add_all(&[batch("a::b", 1)]);
    store.worker_of_all();
    pause(&store, of("a::b"));
    store.worker().release().unwrap();
    store.worker().register_again().unwrap();
    store.worker_of_all();
    assert!(store.take(&["a::b"]).is_empty());
}

fn pause_is_why_a_batch_waits(db: &Database) {
    let store = db.open();
    store.add_all(&[batch("a::b", 1), batch("a::b", 2)]);
    pause(&store, of("a::b"));
    let since = db.now();
    let times = [1, 2].map(|number| store.one("a::b", number).created_at);
    for ahead in store.ahead(&service("a::b"), &times).unwrap() {
        assert_eq!(ahead.unwrap().obstacle, Obstacle::Paused { since });
    }
    let details = store.details(&service("a::b"), &id(2)).unwrap().unwrap();
    let wait = details.wait().unwrap();
    assert_eq!((wait.cause.as_str(), wait.since), ("paused", since));
}

fn paused_services_are_counted(db: &Database) {
    let store = db.open();
    store.add_all(&[batch("a::b", 1), batch("c::d", 2)]);
    let counts = || store.service_counts().unwrap();
    pause(&store, of("a::b"));
    assert_eq!((counts().paused, counts().all_paused), (1, false));
    pause(&store, OperatorTarget::AllServices);
    assert_eq!((counts().paused, counts().all_paused), (1, true));
}

fn claim_is_released_unless_a_batch_is_with_a_submitter(db: &Database) {
    let store = db.open();
    store.add_all(&[batch("a::b", 1)]);
    let release = || act(&store, OperatorVerb::ReleaseClaim, of("a::b"));
    assert_eq!(release(), ActionOutcome::Refused(ActionRefusal::NotClaimed));
    let taken = store.take_one("a::b");
    assert_eq!(release(), ActionOutcome::Refused(ActionRefusal::ClaimInUse));
    store.outcome(&taken, Outcome::Accepted);
    let ActionOutcome::Done(effect) = release() else { panic!() };
    assert!(effect.before.contains(store.worker().instance().as_str()), "{effect:?}");
    assert_eq!(release(), ActionOutcome::Refused(ActionRefusal::NotClaimed));
    store.status(&taken, LedgerStatus::Committed);
    assert!(store.one("a::b", 1).progress.state.is_terminal());
    assert_eq!(store.worker().take(10).unwrap().claims[0].epoch, taken.epoch + 1);
}

fn reasons_of_pauses_are_told(db: &Database) {
    let store = db.open();
    store.add_all(&[batch("a::b", 1), batch("c::d", 2)]);
    let services = [service("a::b"), service("c::d")];
    assert!(store.pauses(&services).unwrap().is_empty());
    pause(&store, of("a::b"));
    let pauses = store.pauses(&services).unwrap();
    assert_eq!((pauses.len(), pauses[&services[0]].reason.as_str()), (1, "maintenance"));
    assert!(pauses[&services[0]].since > Timestamp::from_micros(0));
    pause(&store, OperatorTarget::AllServices);
    assert_eq!(store.pauses(&services).unwrap().len(), 2);
    resume(&store, of("a::b"));
    assert_eq!(store.pauses(&services).unwrap().len(), 2, "all are paused");
}

fn last_instance_does_not_drain(db: &Database) {
    let store = db.open();
    store.add_all(&[batch("a::b", 1)]);
    let instance = store.worker().instance();
    let drain = |verb| act(&store, verb, OperatorTarget::Instance(instance.clone()));
    let refused = ActionOutcome::Refused;
    assert_eq!(drain(OperatorVerb::Drain), refused(ActionRefusal::LastInstance));
    assert_eq!(drain(OperatorVerb::Resume), refused(ActionRefusal::NotDraining));
    let unknown = OperatorTarget::Instance(InstanceId::new("nowhere"));
    assert_eq!(act(&store, OperatorVerb::Drain, unknown), ActionOutcome::NotFound);
}
