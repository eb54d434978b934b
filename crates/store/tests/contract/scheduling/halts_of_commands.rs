//! Batches that a command decides as invalid. The command follows the rules that the server has recorded.

use grid_batch_core::batches::{BatchState, ChangeOutcome, Decision};
use grid_batch_core::operators::{
    ActionOutcome, ActionRefusal, Operator, OperatorAction, OperatorStore, OperatorTarget,
    OperatorVerb,
};
use grid_batch_core::queue::StrategyKind;

use super::fixture::{SERVICE, ScheduledExt, numbers, writing};
use crate::fixture::{Database, StoreExt, TestStore, id, on_both, service};

on_both! {
    command_without_settings_obeys_the_policy_to_halt,
    command_without_settings_obeys_the_policy_to_continue,
    next_batch_of_a_lane_waits_for_the_operator,
    command_is_refused_if_no_rules_are_recorded,
}

fn decide_invalid(store: &TestStore, number: u64) {
    let decided = store.decide(&service(SERVICE), &id(number), 0, Decision::Invalid).unwrap();
    assert!(matches!(decided, ChangeOutcome::Applied { .. }), "{decided:?}");
}

fn state(store: &TestStore, number: u64) -> BatchState {
    store.one(SERVICE, number).progress.state
}

fn halted(store: &TestStore) -> usize {
    store.halts(None, 9).unwrap().len()
}

fn command_without_settings_obeys_the_policy_to_halt(db: &Database) {
    for strategy in StrategyKind::ALL {
        let db = db.another();
        let server = db.open_halting(strategy);
        server.add_all(&[writing(1, "aa"), writing(2, "aa"), writing(3, "aa")]);
        server.worker();
        decide_invalid(&db.open_for_command(), 2);
        assert_eq!(halted(&server), 1, "{strategy:?}");
        assert_eq!(server.commit_all_of(SERVICE), [1], "{strategy:?}");
        server.free_all();
        assert_eq!(server.commit_all_of(SERVICE), [0; 0], "{strategy:?}");
        db.open_for_command().continue_after(&service(SERVICE), &id(2), None).unwrap();
        server.free_all();
        assert_eq!(server.commit_all_of(SERVICE), [3], "{strategy:?}");
    }
}

fn command_without_settings_obeys_the_policy_to_continue(db: &Database) {
    let server = db.open_parallel();
    server.add_all(&[writing(1, "aa"), writing(2, "aa")]);
    server.worker();
    decide_invalid(&db.open_for_command(), 1);
    assert_eq!((halted(&server), server.commit_all_of(SERVICE)), (0, vec![2]));
    assert_eq!(db.scheduling_rows(), 0);
}

fn next_batch_of_a_lane_waits_for_the_operator(db: &Database) {
    let server = db.open_halting(StrategyKind::Parallel);
    server.add_all(&[writing(1, "aa"), writing(2, "aa")]);
    server.worker();
    decide_invalid(&db.open_for_command(), 1);
    assert_eq!(numbers(&server.take_up_to(9)), [0; 0]);
    assert_eq!((state(&server, 2), halted(&server)), (BatchState::New, 1));
}

fn command_is_refused_if_no_rules_are_recorded(db: &Database) {
    let server = db.open_halting(StrategyKind::Serial);
    server.add_all(&[writing(1, "aa")]);
    let act = |verb| {
        let (service_id, batch_id) = (service(SERVICE), id(1));
        let target = OperatorTarget::Batch { service_id, batch_id, attempt: Some(0) };
        let (reason, operator) = (Some("a test".to_owned()), Operator::program());
        let action = OperatorAction { verb, target, reason, operator, dry_run: false };
        db.open_for_command().act(&action).unwrap()
    };
    for verb in [OperatorVerb::EndInvalid, OperatorVerb::Cancel, OperatorVerb::Continue] {
        assert_eq!(act(verb), ActionOutcome::Refused(ActionRefusal::UnknownRules));
    }
    assert!(matches!(act(OperatorVerb::Hold), ActionOutcome::Done(_)));
    server.worker();
    assert!(matches!(act(OperatorVerb::Cancel), ActionOutcome::Done(_)));
    assert_eq!((state(&server, 1), halted(&server)), (BatchState::Invalid, 1));
}
