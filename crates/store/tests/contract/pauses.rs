//! During a pause of one or all services, nothing new is taken, and batches under way are followed.

use grid_batch_core::Timestamp;
use grid_batch_core::batches::{BatchState, LedgerStatus, Stale};
use grid_batch_core::claims::{ClaimKeeper, InstanceId, StatePauseStore, SubmittedBatch};
use grid_batch_core::ledger::Outcome;
use grid_batch_core::operators::{
    ActionOutcome, ActionRefusal, Operator, OperatorAction, OperatorStore, OperatorTarget,
    OperatorVerb,
};
use grid_batch_core::queries::{BatchQueryStore, ServicePause, WaitReason};
use grid_batch_core::queue::{RoundStore, TakenBatch};
use grid_batch_store::Store;

use crate::fixture::{Database, StoreExt, batch, id, on_both, service};

on_both! {
    paused_service_gives_no_batch,
    batch_with_a_submitter_is_named_and_goes_back,
    pause_names_what_other_instances_send,
    pause_of_all_holds_for_new_services_and_instances,
    batch_under_way_is_followed_during_a_pause,
    pause_outlasts_a_takeover,
    pause_is_why_a_batch_waits,
    paused_services_are_counted,
    pauses_have_their_reasons,
    service_with_different_states_gives_no_batch,
    operators_pause_outlasts_different_states,
    only_the_claimant_sets_different_states,
    last_instance_does_not_drain,
    claim_is_released_unless_a_batch_is_with_a_submitter,
}

fn act(store: &Store, verb: OperatorVerb, target: OperatorTarget) -> ActionOutcome {
    let reason = Some("maintenance".to_owned());
    let operator = Operator::program();
    store.act(&OperatorAction { verb, target, reason, operator, dry_run: false }).unwrap()
}

pub fn pause(store: &Store, target: OperatorTarget) {
    let outcome = act(store, OperatorVerb::Pause, target.clone());
    assert!(matches!(outcome, ActionOutcome::Done(_)), "{outcome:?}");
    let again = act(store, OperatorVerb::Pause, target);
    assert_eq!(again, ActionOutcome::Refused(ActionRefusal::AlreadyPaused));
}

fn resume(store: &Store, target: OperatorTarget) {
    let outcome = act(store, OperatorVerb::Resume, target.clone());
    assert!(matches!(outcome, ActionOutcome::Done(_)), "{outcome:?}");
    let again = act(store, OperatorVerb::Resume, target);
    let ActionOutcome::Refused(refusal) = again else { panic!("{again:?}") };
    assert!(matches!(refusal, ActionRefusal::NotPaused | ActionRefusal::AllPaused), "{refusal}");
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

fn act_on_batch(store: &Store, verb: OperatorVerb, number: u8) {
    let (service_id, batch_id) = (service("a::b"), id(number.into()));
    let target = OperatorTarget::Batch { service_id, batch_id, attempt: None };
    let outcome = act(store, verb, target);
    assert!(matches!(outcome, ActionOutcome::Done(_)), "{outcome:?}");
}

fn batch_with_a_submitter_is_named_and_goes_back(db: &Database) {
    let store = db.open();
    store.add_all(&[batch("a::b", 1), batch("c::d", 2)]);
    let taken = [store.take_one("a::b"), store.take_one("c::d")];
    let both = [service("a::b"), service("c::d")];
    let stopped = || store.worker().stopped(&both).unwrap();
    let sent = |target| store.being_sent(&target).unwrap();
    assert_eq!(stopped(), []);
    assert_eq!(sent(OperatorTarget::AllServices).len(), 2);

    act_on_batch(&store, OperatorVerb::Hold, 1);
    let held = SubmittedBatch {
        service_id: service("a::b"),
        batch_id: id(1),
        attempt_id: taken[0].attempt_id(),
    };
    assert_eq!(stopped(), std::slice::from_ref(&held));
    assert_eq!(sent(of("a::b")), std::slice::from_ref(&held));
    store.worker().give_back(&[TakenBatch::without_bytes(held)]).unwrap();
    assert_eq!((stopped(), sent(of("a::b"))), (vec![], vec![]));
    let back = store.one("a::b", 1);
    assert_eq!(back.progress.state, BatchState::Delayed);
    assert!(back.held.is_some(), "it is still held");
    assert!(store.take(&["a::b"]).is_empty());
    // The outcome of its submission comes later.
    store.outcome(&taken[0], Outcome::Parked);
    act_on_batch(&store, OperatorVerb::Release, 1);
    assert_eq!(store.take_one("a::b").attempt, 2);

    pause(&store, of("c::d"));
    assert_eq!(stopped().len(), 1);
    pause(&store, OperatorTarget::AllServices);
    assert_eq!(stopped().len(), 2);
}

fn pause_names_what_other_instances_send(db: &Database) {
    let store = db.open();
    store.add_all(&[batch("a::b", 1)]);
    store.take_one("a::b");
    let owner = store.worker().instance();
    let sent = |instance: &str| {
        let target = OperatorTarget::Instance(InstanceId::new(instance));
        store.being_sent(&target).unwrap().len()
    };
    assert_eq!((sent(owner.as_str()), sent("other")), (1, 0));
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
    let of_one = act(&store, OperatorVerb::Resume, of("a::b"));
    assert_eq!(of_one, ActionOutcome::Refused(ActionRefusal::AllPaused));
    // The pause of one service is independent of it.
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
        assert_eq!(ahead.unwrap().reason, WaitReason::Paused { since, pause: None });
    }
    let details = store.details(&service("a::b"), &id(2)).unwrap().unwrap();
    let wait = details.wait().unwrap();
    assert_eq!((wait.reason.name(), wait.since), ("paused", since));
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

fn pauses_have_their_reasons(db: &Database) {
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

fn service_with_different_states_gives_no_batch(db: &Database) {
    let store = db.open();
    store.add_all(&[batch("a::b", 1), batch("a::b", 2)]);
    let sent = store.take_one("a::b");
    store.outcome(&sent, Outcome::Accepted);
    let (claims, paused) = (store.worker(), service("a::b"));
    assert!(claims.set_states_differ(&paused, true).unwrap());
    assert!(!claims.set_states_differ(&paused, true).unwrap());
    assert_eq!(claims.services_with_different_states().unwrap(), std::slice::from_ref(&paused));
    let pause = store.pauses(std::slice::from_ref(&paused)).unwrap().remove(&paused).unwrap();
    assert!(pause.states_differ && pause.operator.is_none(), "{pause:?}");
    assert_eq!(pause.reason, ServicePause::DIFFERENT_STATES);
    let counts = store.service_counts().unwrap();
    assert_eq!((counts.states_differ, counts.paused), (1, 0));

    // Operators can neither end it nor cause a batch to be sent again.
    let resumed = act(&store, OperatorVerb::Resume, of("a::b"));
    assert_eq!(resumed, ActionOutcome::Refused(ActionRefusal::StatesDiffer));
    let (service_id, attempt) = (service("a::b"), Some(sent.attempt));
    let target = OperatorTarget::Batch { service_id, batch_id: id(1), attempt };
    let resubmitted = act(&store, OperatorVerb::Resubmit, target.clone());
    assert_eq!(resubmitted, ActionOutcome::Refused(Stale::StatesDiffer.into()));
    store.status(&sent, LedgerStatus::Committed);
    assert!(store.take(&["a::b"]).is_empty());

    assert!(claims.set_states_differ(&paused, false).unwrap());
    assert!(!claims.set_states_differ(&paused, false).unwrap());
    assert!(store.pauses(&[paused]).unwrap().is_empty());
    assert_eq!(store.take_one("a::b").batch_id, id(2));
}

fn operators_pause_outlasts_different_states(db: &Database) {
    let store = db.open();
    store.add_all(&[batch("a::b", 1)]);
    let (claims, paused) = (store.worker_of_all(), service("a::b"));
    let reason = || {
        let pause = store.pauses(std::slice::from_ref(&paused)).unwrap().remove(&paused)?;
        assert!(pause.operator.is_some() || pause.states_differ);
        Some(pause.reason)
    };
    let both = || reason().is_some_and(|text| text.contains("differ") && text.contains("mainten"));
    for begins_first in [true, false] {
        let begin = || claims.set_states_differ(&paused, true).unwrap();
        if begins_first {
            begin();
        }
        pause(&store, of("a::b"));
        if !begins_first {
            begin();
        }
        assert!(both());
        claims.set_states_differ(&paused, false).unwrap();
        assert_eq!(reason().as_deref(), Some("maintenance"));
        assert!(store.take(&["a::b"]).is_empty());
        begin();
        let resumed = act(&store, OperatorVerb::Resume, of("a::b"));
        let ActionOutcome::Done(effect) = resumed else { panic!("{resumed:?}") };
        assert!(effect.after.contains("differ") && !effect.next_waits, "{effect:?}");
        assert!(store.take(&["a::b"]).is_empty());
        claims.set_states_differ(&paused, false).unwrap();
        assert_eq!(reason(), None);
    }
    assert_eq!(store.take_one("a::b").batch_id, id(1));
}

fn only_the_claimant_sets_different_states(db: &Database) {
    let store = db.open();
    store.add_all(&[batch("a::b", 1)]);
    let claims = store.worker();
    let paused = service("a::b");
    assert!(!claims.set_states_differ(&paused, true).unwrap(), "it is not claimed");
    store.worker_of_all();
    assert!(claims.set_states_differ(&paused, true).unwrap());
    claims.release().unwrap();
    claims.register_again().unwrap();
    assert_eq!(claims.services_with_different_states().unwrap(), []);
    store.worker_of_all();
    assert_eq!(claims.services_with_different_states().unwrap(), std::slice::from_ref(&paused));
    assert!(store.take(&["a::b"]).is_empty());
    assert!(claims.set_states_differ(&paused, false).unwrap());
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
