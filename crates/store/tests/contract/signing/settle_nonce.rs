use grid_batch_core::Timestamp;
use grid_batch_core::batches::LedgerStatus;
use grid_batch_core::queue::TakenBatch;
use grid_batch_withdrawals::{
    NewSignedTransaction, NonceOutcome, NonceUse, SigningStore, Terms, UnpaidWithdrawal,
    UnsettledNonce, Withdrawal, WithdrawalStore,
};

use crate::{
    fixture::{Database, TestStore, by_program, on_both, service},
    withdrawals::fixture::{
        ACCOUNT, WithdrawalsExt, attempt_of, signed, withdrawal, withdrawal_id,
    },
};

on_both! {
    adopted_transaction_belongs_to_its_withdrawal,
    adopted_nonce_is_the_only_one,
    ended_withdrawal_adopts_nothing,
    replacement_is_adopted_for_the_same_nonce,
    nonce_moves_to_the_withdrawal_that_it_paid,
    nonce_with_an_outcome_is_settled,
    nonce_of_an_open_withdrawal_is_not_used_elsewhere,
    undecided_nonce_stops_signing,
    undecided_nonce_of_an_ended_batch_keeps_its_withdrawal,
    operator_decides_an_undecided_nonce,
    nonces_of_withdrawals_in_progress_are_not_unsettled,
    fillers_and_decided_batches_are_unsettled,
    unsettled_since_is_before_the_first_unknown_use,
    unpaid_withdrawals_are_in_the_order_of_batches,
}

fn used_for(number: u128, transaction: NewSignedTransaction) -> NonceUse {
    NonceUse::Withdrawal { id: withdrawal_id(number), transaction }
}

fn elsewhere(note: &str) -> NonceUse {
    NonceUse::Elsewhere { hash: Some([3; 32]), note: note.to_owned() }
}

fn undecided(note: &str) -> NonceUse {
    NonceUse::Undecided { hash: None, note: note.to_owned() }
}

fn settle(store: &TestStore, nonce: u64, nonce_use: &NonceUse) -> bool {
    let used_at = Timestamp::from_micros(7);
    store.settle_nonce(&service(ACCOUNT), nonce, used_at, nonce_use).unwrap()
}

fn unsettled(store: &TestStore) -> Vec<UnsettledNonce> {
    store.unsettled_nonces(&service(ACCOUNT)).unwrap().stored
}

fn with_two(db: &Database) -> TestStore {
    let store = db.open();
    store.schedule_all(&[1, 2].map(|number| withdrawal(ACCOUNT, number)));
    store
}

fn payment_nonce(store: &TestStore, taken: &TakenBatch) -> Option<u64> {
    let payment = store.payment(&taken.service_id, &taken.batch_id).unwrap().unwrap();
    payment.nonce.map(|nonce| nonce.nonce)
}

fn adopted_transaction_belongs_to_its_withdrawal(db: &Database) {
    let store = with_two(db);
    assert!(settle(&store, 4, &used_for(2, signed(4, 100))));
    let nonce = store.details_of(2).nonce.unwrap();
    assert_eq!((nonce.nonce, nonce.generation, &nonce.outcome), (4, 1, &None));
    let [adopted] = &nonce.transactions[..] else { panic!("{nonce:?}") };
    assert_eq!((&adopted.signed, adopted.adopted, adopted.sent_at), (&signed(4, 100), true, None));
    assert_eq!(store.details_of(1).nonce, None);
    assert_eq!(store.transactions_from(&service(ACCOUNT), 0).unwrap(), [signed(4, 100)]);
}

fn adopted_nonce_is_the_only_one(db: &Database) {
    let store = with_two(db);
    assert!(settle(&store, 4, &used_for(1, signed(4, 100))));
    let taken = store.take_one(ACCOUNT);
    assert_eq!((payment_nonce(&store, &taken), store.sign(&taken, 9)), (Some(4), None));
    assert!(!settle(&store, 5, &used_for(1, signed(5, 100))));
    store.close_as(ACCOUNT, 4, NonceOutcome::Withdrawn { withdrawal_id: "1".to_owned() });
    assert!(!settle(&store, 5, &used_for(1, signed(5, 100))));
    assert_eq!(unsettled(&store), []);
}

fn ended_withdrawal_adopts_nothing(db: &Database) {
    let store = with_two(db);
    let taken = store.take_one(ACCOUNT);
    store.reject(&taken, "no");
    assert!(!settle(&store, 4, &used_for(1, signed(4, 100))));
    assert!(!settle(&store, 4, &used_for(9, signed(4, 100))));
    assert_eq!(store.next_nonce(&service(ACCOUNT)), Ok(None));
}

fn replacement_is_adopted_for_the_same_nonce(db: &Database) {
    let store = with_two(db);
    let (_, nonce) = store.take_and_sign(ACCOUNT);
    assert!(settle(&store, nonce, &used_for(1, signed(nonce, 200))));
    let transactions = store.details_of(1).nonce.unwrap().transactions;
    let adopted: Vec<bool> = transactions.iter().map(|it| it.adopted).collect();
    assert_eq!(adopted, [false, true]);
}

fn nonce_moves_to_the_withdrawal_that_it_paid(db: &Database) {
    let store = with_two(db);
    let (taken, nonce) = store.take_and_sign(ACCOUNT);
    assert!(settle(&store, nonce, &used_for(2, signed(nonce, 200))));
    assert_eq!(payment_nonce(&store, &taken), None);
    let transactions = store.details_of(2).nonce.unwrap().transactions;
    assert_eq!(
        transactions.into_iter().map(|it| it.signed).collect::<Vec<_>>(),
        [signed(nonce, 200)]
    );
    assert_eq!(store.sign(&taken, 0).unwrap().signed.nonce, nonce + 1);
}

fn nonce_with_an_outcome_is_settled(db: &Database) {
    let store = with_two(db);
    assert!(settle(&store, 0, &elsewhere("by another program")));
    for other in [elsewhere("again"), undecided("why"), used_for(1, signed(0, 100))] {
        assert!(!settle(&store, 0, &other), "{other:?}");
    }
    assert_eq!(unsettled(&store), []);
    assert_eq!(store.sign(&store.take_one(ACCOUNT), 0).unwrap().signed.nonce, 1);
}

/// The nonce may have been assigned while its use was searched.
fn nonce_of_an_open_withdrawal_is_not_used_elsewhere(db: &Database) {
    let store = with_two(db);
    let (taken, _) = store.take_and_sign(ACCOUNT);
    let nonce = payment_nonce(&store, &taken);
    for nonce_use in [elsewhere("another program"), undecided("no node shows it")] {
        assert!(!settle(&store, nonce.unwrap(), &nonce_use));
    }
    assert_eq!(payment_nonce(&store, &taken), nonce);
}

fn undecided_nonce_stops_signing(db: &Database) {
    let store = with_two(db);
    assert!(settle(&store, 0, &undecided("no node shows it")));
    assert!(settle(&store, 0, &undecided("still none")));
    let taken = store.take_one(ACCOUNT);
    assert_eq!(store.sign(&taken, 1), None);
    let undecided = Some("still none".to_owned());
    assert_eq!(
        unsettled(&store),
        [UnsettledNonce { nonce: 0, undecided, to_fill: false, hashes: vec![] }]
    );
    let listed = store.undecided_nonces().unwrap();
    assert_eq!(listed.len(), 1);
    assert_eq!((&listed[0].0, listed[0].1.nonce), (&service(ACCOUNT), 0));
    assert!(settle(&store, 0, &used_for(1, signed(0, 100))));
    assert_eq!((unsettled(&store), store.undecided_nonces().unwrap()), (vec![], vec![]));
    assert_eq!(payment_nonce(&store, &taken), Some(0));
}

fn undecided_nonce_of_an_ended_batch_keeps_its_withdrawal(db: &Database) {
    let store = with_two(db);
    let (taken, nonce) = store.take_and_sign(ACCOUNT);
    store.reject(&taken, "decided");
    assert!(settle(&store, nonce, &undecided("no node shows it")));
    assert_eq!(store.details_of(1).nonce.unwrap().nonce, nonce);
    assert!(settle(&store, nonce, &elsewhere("by another program")));
    assert_eq!(store.details_of(1).nonce.unwrap().outcome, Some(NonceOutcome::UsedElsewhere));
}

fn operator_decides_an_undecided_nonce(db: &Database) {
    let store = with_two(db);
    let decide = |nonce, paid: u128| {
        store.decide_nonce(&service(ACCOUNT), nonce, &withdrawal_id(paid)).unwrap()
    };
    assert!(!decide(0, 2));
    for nonce in [0, 1] {
        assert!(settle(&store, nonce, &undecided("no node shows it")));
    }
    assert!(!decide(0, 9));
    assert!(decide(0, 2));
    assert!(!decide(1, 2));
    assert!(settle(&store, 1, &elsewhere("by another program")));
    let nonce = store.details_of(2).nonce.unwrap();
    assert_eq!((nonce.nonce, nonce.outcome, nonce.transactions.len()), (0, None, 0));
    assert_eq!(store.sign(&store.take_one(ACCOUNT), 0).unwrap().signed.nonce, 2);
}

fn nonces_of_withdrawals_in_progress_are_not_unsettled(db: &Database) {
    let store = with_two(db);
    assert_eq!(store.unsettled_nonces(&service(ACCOUNT)).unwrap().next, None);
    let (_, nonce) = store.take_and_sign(ACCOUNT);
    let now = store.unsettled_nonces(&service(ACCOUNT)).unwrap();
    assert_eq!((now.next, now.stored), (Some(nonce + 1), vec![]));
}

fn fillers_and_decided_batches_are_unsettled(db: &Database) {
    let store = with_two(db);
    let taken = store.take_one(ACCOUNT);
    let payment = store.sign(&taken, 5).unwrap().signed;
    let filler = |nonce| Ok(NewSignedTransaction { is_filler: true, ..signed(nonce, 9) });
    let filler = store.fill_nonce(&attempt_of(&taken), 4, &mut { filler }).unwrap().unwrap().signed;
    store.reject(&taken, "decided");
    let expected = [(4, filler.hash), (5, payment.hash)].map(|(nonce, hash)| UnsettledNonce {
        nonce,
        undecided: None,
        to_fill: false,
        hashes: vec![hash],
    });
    assert_eq!(unsettled(&store), expected);
    assert_eq!(store.unsettled_nonces(&service("other")).unwrap().stored, []);
}

fn unsettled_since_is_before_the_first_unknown_use(db: &Database) {
    let store = db.open();
    let since = || store.unsettled_since(&service(ACCOUNT)).unwrap();
    assert_eq!(since(), None);
    store.schedule_all(&[withdrawal(ACCOUNT, 1)]);
    assert_eq!(since(), Some(store.details_of(1).created_at));
    settle(&store, 0, &elsewhere("by another program"));
    assert_eq!(since(), Some(Timestamp::from_micros(7)));
}

fn unpaid_withdrawals_are_in_the_order_of_batches(db: &Database) {
    let store = db.open();
    let equal = |number| grid_batch_withdrawals::Withdrawal {
        id: withdrawal_id(number),
        ..withdrawal(ACCOUNT, 1)
    };
    store.schedule_all(&[1, 2, 3, 4].map(equal));
    store.schedule_all(&[withdrawal(ACCOUNT, 5), withdrawal("other", 6)]);
    assert_eq!(store.pools(&service(ACCOUNT)).unwrap(), ["0xpool"]);
    // The first one is committed, and the second one fails and is retried.
    let first = store.take_one(ACCOUNT);
    assert!(!store.has_paid("0xpool").unwrap());
    store.accept_and(&first, LedgerStatus::Committed);
    assert!(store.has_paid("0xpool").unwrap() && !store.has_paid("0xother").unwrap());
    let second = store.take_one(ACCOUNT);
    store.reject(&second, "no");
    let unpaid = || {
        let Withdrawal { pool, beneficiary, amount, .. } = withdrawal(ACCOUNT, 1);
        let terms = Terms::Withdrawal { pool, beneficiary, amount };
        store.unpaid_withdrawals(&service(ACCOUNT), &terms).unwrap()
    };
    let expected = |number: u128, is_open, nonce| {
        let created_at = store.details_of(number).created_at;
        UnpaidWithdrawal { id: withdrawal_id(number), created_at, is_open, nonce }
    };
    let (_, nonce) = store.take_and_sign(ACCOUNT);
    let before =
        [expected(2, false, None), expected(3, true, Some(nonce)), expected(4, true, None)];
    assert_eq!(unpaid(), before);
    store.retry_withdrawal(&withdrawal_id(2), &by_program()).unwrap();
    store.close_as(ACCOUNT, nonce, NonceOutcome::Withdrawn { withdrawal_id: "1".to_owned() });
    assert_eq!(unpaid(), [expected(4, true, None), expected(2, true, None)]);
}
