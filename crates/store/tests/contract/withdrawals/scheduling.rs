use std::thread;

use diesel::{Connection, PgConnection, connection::SimpleConnection};
use grid_batch_core::BatchError;
use grid_batch_core::batches::{BatchState, Progress};
use grid_batch_core::queries::BatchQueryStore;
use grid_batch_withdrawals::{
    Reward, RewardId, ScheduleOutcome, Withdrawal, WithdrawalConflict, WithdrawalKind,
    WithdrawalStore,
};

use super::fixture::{
    ACCOUNT, KNOWN, WithdrawalsExt, exactly, is_stored, withdrawal, withdrawal_id,
};
use crate::fixture::{
    Database, StoreExt, TestStore, batch, by_program, id, on_both, service, wait_until_blocked,
};

on_both! {
    withdrawal_is_scheduled_with_its_batch,
    same_withdrawal_again_is_scheduled_once,
    conflict_returns_the_stored_withdrawal,
    same_withdrawal_of_another_account_stays_with_first,
    conflict_does_not_block_other_withdrawals,
    duplicate_within_one_call_is_scheduled_once,
    empty_schedule_is_accepted,
    withdrawals_and_batches_share_one_order,
    concurrent_schedules_of_one_id_store_one,
    concurrent_schedules_for_two_accounts_store_one,
    withdrawal_of_an_unknown_reward_is_refused,
    retention_keeps_withdrawals_and_latest_batches,
}

fn withdrawal_is_scheduled_with_its_batch(db: &Database) {
    let store = db.open();
    let requested = withdrawal(ACCOUNT, 1);
    store.schedule_all(std::slice::from_ref(&requested));

    let details = store.details_of(1);
    assert_eq!((details.withdrawal, details.created_at), (requested.clone(), db.now()));
    assert_eq!((details.generation, details.cancelled_at, details.nonce), (1, None, None));
    assert_eq!((details.ahead, details.fail_reason), (exactly(0), None));
    assert_eq!(
        (details.batch.service_id, details.batch.batch_id),
        (service(ACCOUNT), requested.id.batch_id(1))
    );
    assert_eq!(details.batch.progress, Progress::NEW);

    let taken = store.take_one(ACCOUNT);
    assert_eq!(taken.batch_id, requested.id.batch_id(1));
    assert_eq!(taken.serialized_batch, b"0xpool 0xmember1 1001");
    assert_eq!(store.withdrawal(&withdrawal_id(2)).unwrap(), None);
}

fn same_withdrawal_again_is_scheduled_once(db: &Database) {
    let store = db.open();
    let requested = [withdrawal(ACCOUNT, 1)];
    store.schedule_all(&requested);
    let before = store.details_of(1);
    db.later(1);
    assert_eq!(store.schedule(&requested).unwrap(), [KNOWN]);
    assert_eq!(store.details_of(1), before);
    assert_eq!(store.depth(&service(ACCOUNT)).unwrap(), 1);

    store.commit_next(ACCOUNT);
    assert_eq!(store.schedule(&requested).unwrap(), [KNOWN]);
    assert!(store.take(&[ACCOUNT]).is_empty());
}

fn conflict_returns_the_stored_withdrawal(db: &Database) {
    let store = db.open();
    let first = withdrawal(ACCOUNT, 1);
    store.schedule_all(std::slice::from_ref(&first));
    let of = |change: &dyn Fn(&mut Withdrawal)| {
        let mut other = first.clone();
        change(&mut other);
        other
    };
    for other in [
        of(&|other| other.amount = "7".to_owned()),
        of(&|other| other.beneficiary = "0xother".to_owned()),
        of(&|other| other.pool = "0xother".to_owned()),
        of(&|other| {
            other.kind = WithdrawalKind::Claim;
            other.reward_id = Some(RewardId::from_bytes([1; 16]));
        }),
    ] {
        let conflict = store.schedule(&[other]).unwrap().remove(0).unwrap_err();
        let message = conflict.to_string();
        assert_eq!(conflict, WithdrawalConflict::OtherTerms { stored: Box::new(first.clone()) });
        assert!(message.contains(&first.id.to_string()) && message.contains("1001"), "{message}");
    }
    assert_eq!(store.depths(None, 9).unwrap().len(), 1);
    assert_eq!(store.depth(&service(ACCOUNT)).unwrap(), 1);
}

fn same_withdrawal_of_another_account_stays_with_first(db: &Database) {
    let store = db.open();
    store.schedule_all(&[withdrawal(ACCOUNT, 1)]);
    let moved = withdrawal("eip155:1:0x0b", 1);
    assert_eq!(store.schedule(&[moved]).unwrap(), [KNOWN]);
    assert_eq!(store.depths(None, 9).unwrap().len(), 1);
    assert_eq!(store.depth(&service(ACCOUNT)).unwrap(), 1);
}

fn conflict_does_not_block_other_withdrawals(db: &Database) {
    let store = db.open();
    store.schedule_all(&[withdrawal(ACCOUNT, 1)]);
    let other = Withdrawal { amount: "7".to_owned(), ..withdrawal(ACCOUNT, 1) };
    let answers = store
        .schedule(&[withdrawal(ACCOUNT, 2), other, withdrawal(ACCOUNT, 1), withdrawal("b", 3)])
        .unwrap();
    assert_eq!((is_stored(&answers[0]), answers[1].is_err()), (true, true));
    assert_eq!((&answers[2], is_stored(&answers[3])), (&KNOWN, true));
    let depths = [ACCOUNT, "b"].map(|account| store.depth(&service(account)).unwrap());
    assert_eq!(depths, [2, 1]);
}

fn duplicate_within_one_call_is_scheduled_once(db: &Database) {
    let store = db.open();
    let requested = withdrawal(ACCOUNT, 1);
    let other = Withdrawal { amount: "7".to_owned(), ..requested.clone() };
    let answers = store.schedule(&[requested.clone(), requested, other]).unwrap();
    assert_eq!((is_stored(&answers[0]), &answers[1]), (true, &KNOWN));
    assert!(answers[2].is_err());
    assert_eq!(store.depth(&service(ACCOUNT)).unwrap(), 1);
}

fn empty_schedule_is_accepted(db: &Database) {
    assert!(db.open().schedule(&[]).unwrap().is_empty());
}

fn withdrawals_and_batches_share_one_order(db: &Database) {
    let store = db.open();
    store.schedule_all(&[withdrawal(ACCOUNT, 2), withdrawal(ACCOUNT, 1)]);
    store.add_all(&[batch(ACCOUNT, 9)]);
    store.schedule_all(&[withdrawal(ACCOUNT, 3)]);
    assert_eq!(store.details_of(3).ahead, exactly(3));
    let order = [(); 4].map(|()| store.commit_next(ACCOUNT));
    let tries = |number: u128| withdrawal_id(number).batch_id(1);
    assert_eq!(order, [tries(2), tries(1), id(9), tries(3)]);
}

/// Schedules each of these from its own thread; returns the answers.
fn schedule_concurrently(store: &TestStore, requested: &[Withdrawal]) -> Vec<ScheduleOutcome> {
    thread::scope(|scope| {
        let callers: Vec<_> = requested
            .iter()
            .map(|requested| {
                scope.spawn(|| store.schedule(std::slice::from_ref(requested)).unwrap())
            })
            .collect();
        callers.into_iter().flat_map(|caller| caller.join().unwrap()).flatten().collect()
    })
}

fn concurrent_schedules_of_one_id_store_one(db: &Database) {
    let store = db.open();
    for number in 0..5 {
        let answers =
            schedule_concurrently(&store, &[(); 12].map(|()| withdrawal(ACCOUNT, number)));
        let stored =
            answers.iter().filter(|answer| **answer != ScheduleOutcome::AlreadyStored).count();
        assert_eq!((stored, answers.len()), (1, 12));
    }
    assert_eq!(store.depth(&service(ACCOUNT)).unwrap(), 5);
}

fn concurrent_schedules_for_two_accounts_store_one(db: &Database) {
    let store = db.open();
    for number in 0..10 {
        let accounts = ["a", "b", "c", "d"];
        let requested: Vec<_> =
            (0..12).map(|caller| withdrawal(accounts[caller % 4], number)).collect();
        let answers = schedule_concurrently(&store, &requested);
        let stored =
            answers.iter().filter(|answer| **answer != ScheduleOutcome::AlreadyStored).count();
        assert_eq!((stored, answers.len()), (1, 12));
    }
    let open: u64 = store.depths(None, 9).unwrap().iter().map(|depth| depth.open).sum();
    assert_eq!(open, 10);
}

fn withdrawal_of_an_unknown_reward_is_refused(db: &Database) {
    let store = db.open();
    let reward_id = RewardId::from_bytes([1; 16]);
    let claimed = Withdrawal {
        kind: WithdrawalKind::Claim,
        reward_id: Some(reward_id),
        ..withdrawal(ACCOUNT, 1)
    };
    let error = store.schedule(std::slice::from_ref(&claimed)).unwrap_err();
    let BatchError::InternalError(text) = error else { panic!("{error}") };
    assert!(text.starts_with("the database refused a statement"), "{text}");
    assert_eq!(store.depth(&service(ACCOUNT)).unwrap(), 0);
    let reward = Reward {
        id: reward_id,
        pool: claimed.pool.clone(),
        amount: claimed.amount.clone(),
        once_per_member: true,
        created_at: db.now(),
    };
    store.add_reward(&reward).unwrap().unwrap();
    store.schedule_all(std::slice::from_ref(&claimed));
    assert_eq!(store.details_of(1).withdrawal, claimed);
}

fn retention_keeps_withdrawals_and_latest_batches(db: &Database) {
    let store = db.open();
    store.schedule_all(&[1, 2].map(|number| withdrawal(ACCOUNT, number)));
    store.add_all(&[batch(ACCOUNT, 9)]);
    let refused = store.take_one(ACCOUNT);
    store.reject(&refused, "no");
    store.commit_next(ACCOUNT);
    store.commit_next(ACCOUNT);
    store.retry_withdrawal(&withdrawal_id(1), &by_program()).unwrap();
    store.commit_next(ACCOUNT);

    // A batch without withdrawal, and the failed batch of the first withdrawal.
    assert_eq!(store.remove_in_steps(db.later(1), 2), 2);
    assert!(store.find(&refused.batch_id).unwrap().is_empty());
    for number in [1, 2] {
        assert_eq!(store.details_of(number).batch.progress.state, BatchState::Committed);
        let again = store.schedule(&[withdrawal(ACCOUNT, number)]).unwrap();
        assert_eq!(again, [KNOWN]);
    }
}

/// The second insert waits at the unique index for the first, and then conflicts with it.
#[test]
fn concurrent_schedule_for_another_account_waits() {
    let db = Database::postgres();
    let store = db.open();
    let mut first = PgConnection::establish(&db.postgres_url()).unwrap();
    first
        .batch_execute(
            "begin;
             insert into services values ('a', 1, 1);
             insert into batches (service_id, batch_id, created_at)
                 values ('a', decode(repeat('00', 64), 'hex'), 1);
             insert into withdrawals (withdrawal_id, service_id, kind, pool, beneficiary, amount,
                     batch_seq, created_at)
                 select decode(repeat('00', 15) || '01', 'hex'), 'a', 'propose', 'p', 'b', '7', seq, 1
                 from batches",
        )
        .unwrap();
    let answer = thread::scope(|scope| {
        let second = scope.spawn(|| store.schedule(&[withdrawal("b", 1)]).unwrap().remove(0));
        let mut watcher = PgConnection::establish(&db.postgres_url()).unwrap();
        wait_until_blocked(&mut watcher, "insert_withdrawals");
        first.batch_execute("commit").unwrap();
        second.join().unwrap()
    });
    let stored_for_a = |stored: &Withdrawal| stored.service_id == service("a");
    assert!(
        matches!(&answer, Err(WithdrawalConflict::OtherTerms { stored }) if stored_for_a(stored)),
        "{answer:?}"
    );
    assert_eq!(db.number("select count(*) as number from batches"), 1);
    assert_eq!(store.depth(&service("b")).unwrap(), 0);
}
