//! Withdrawals of a parked pool do not stop those of the other pools of their gas admin.

use std::{
    collections::{BTreeMap, BTreeSet},
    mem,
    time::Duration,
};

use grid_batch_core::Timestamp;
use grid_batch_core::batches::{BatchState, Change, ChangeOutcome, Decision, Event, LedgerStatus};
use grid_batch_core::evidence::Evidence;
use grid_batch_core::ledger::Outcome;
use grid_batch_core::operators::{
    ActionOutcome, Operator, OperatorAction, OperatorStore, OperatorTarget, OperatorVerb,
};
use grid_batch_core::queries::BatchQueryStore;
use grid_batch_core::queue::TakenBatch;
use grid_batch_withdrawals::{
    CancelOutcome, FollowingPayments, NonceOutcome, SigningStore, Withdrawal, WithdrawalState,
    WithdrawalStore,
};
use proptest::{collection::vec, prelude::*};

use crate::{
    fixture::{Database, StoreExt, TestStore, by_program, cases, happened, on_both, service},
    withdrawals::fixture::{ACCOUNT, WithdrawalsExt, signed, withdrawal, withdrawal_id},
};

on_both! {
    withdrawal_of_another_pool_is_next,
    parked_withdrawal_is_tried_first_when_it_is_due,
    attempts_of_a_parked_withdrawal_are_kept,
    withdrawals_of_a_parked_pool_keep_their_order,
    whole_account_parked_stops_all_pools,
    nothing_passes_one_that_was_sent,
    held_withdrawal_with_a_nonce_stops_all_pools,
    cancelled_withdrawal_with_a_nonce_is_next,
    refused_withdrawal_with_a_nonce_stops_all_pools,
    withdrawals_signed_ahead_go_before_a_parked_one,
    withdrawals_signed_ahead_keep_their_order_after_a_restore,
    nothing_is_signed_ahead_of_an_earlier_withdrawal,
    cancelled_parked_withdrawal_is_not_overtaken,
    new_withdrawal_of_another_pool_is_next,
    new_withdrawal_does_not_wait_for_a_held_parked_one,
    withdrawals_of_a_parked_pool_are_not_signed_ahead,
    first_of_a_pool_follows_in_its_order,
    only_the_parked_withdrawal_is_listed_as_parked,
    parked_withdrawals_can_be_moved,
    restored_database_puts_all_lanes_in_doubt,
    withdrawals_wait_for_those_of_their_pool,
    open_withdrawals_are_counted_once,
    any_sequence_of_gates_pays_each_pool_in_order,
}

const GATE: Duration = Duration::from_secs(5);

fn of_pool(number: u128, pool: &str) -> Withdrawal {
    Withdrawal { pool: pool.to_owned(), ..withdrawal(ACCOUNT, number) }
}

/// Schedules withdrawals 1, 2 and so on from these pools.
fn schedule(store: &TestStore, pools: &[&str]) {
    let withdrawals: Vec<_> = (1..).zip(pools).map(|(n, pool)| of_pool(n, pool)).collect();
    store.schedule_all(&withdrawals);
}

fn number_of(taken: &TakenBatch) -> u128 {
    (1..100).find(|number| withdrawal_id(*number).batch_id(1) == taken.batch_id).unwrap()
}

/// Takes the next withdrawal, which must be this one.
fn take(store: &TestStore, number: u128) -> TakenBatch {
    let taken = store.take_one(ACCOUNT);
    assert_eq!(number_of(&taken), number);
    taken
}

fn takes_none(store: &TestStore) {
    assert_eq!(store.take(&[ACCOUNT]).len(), 0);
}

fn end_as(db: &Database, store: &TestStore, taken: &TakenBatch, outcome: Outcome) -> ChangeOutcome {
    let event = Event::Outcome { attempt: taken.attempt, outcome };
    let retry_at = Some(db.now().plus(GATE));
    let error = Some("the gas price is too high".to_owned());
    store.record_one(Change { retry_at, error, ..happened(taken, event) })
}

fn park(db: &Database, store: &TestStore, taken: &TakenBatch) {
    let parked = end_as(db, store, taken, Outcome::PoolParked);
    assert!(matches!(parked, ChangeOutcome::Applied { next_waits: true, .. }), "{parked:?}");
}

/// Takes the next withdrawal, which must be this one, and parks it for its pool.
fn park_next(db: &Database, store: &TestStore, number: u128) {
    park(db, store, &take(store, number));
}

fn accept_next(store: &TestStore, number: u128) -> TakenBatch {
    let taken = take(store, number);
    store.sign(&taken, 0).unwrap();
    store.outcome(&taken, Outcome::Accepted);
    taken
}

/// Closes the nonce of a withdrawal and ends it.
fn commit(store: &TestStore, taken: &TakenBatch, nonce: u64) {
    store.close_as(ACCOUNT, nonce, NonceOutcome::Withdrawn { withdrawal_id: nonce.to_string() });
    let ended = store.status(taken, LedgerStatus::Committed);
    assert!(matches!(ended, ChangeOutcome::Applied { .. }), "{ended:?}");
}

fn pay_next(store: &TestStore, number: u128) {
    let taken = take(store, number);
    let nonce = store.sign(&taken, 0).unwrap().signed.nonce;
    store.outcome(&taken, Outcome::Accepted);
    commit(store, &taken, nonce);
}

fn withdrawal_of_another_pool_is_next(db: &Database) {
    let store = db.open();
    schedule(&store, &["a", "a", "b", "b"]);
    park_next(db, &store, 1);
    pay_next(&store, 3);
    pay_next(&store, 4);
    takes_none(&store);
    db.later(6);
    pay_next(&store, 1);
    pay_next(&store, 2);
    takes_none(&store);
}

fn parked_withdrawal_is_tried_first_when_it_is_due(db: &Database) {
    let store = db.open();
    schedule(&store, &["a", "b", "b"]);
    park_next(db, &store, 1);
    let second = accept_next(&store, 2);
    db.later(6);
    takes_none(&store);
    store.status(&second, LedgerStatus::Committed);
    park_next(db, &store, 1);
    pay_next(&store, 3);
    db.later(6);
    pay_next(&store, 1);
}

fn attempts_of_a_parked_withdrawal_are_kept(db: &Database) {
    let store = db.open();
    schedule(&store, &["a", "b"]);
    park_next(db, &store, 1);
    pay_next(&store, 2);
    db.later(6);
    let taken = take(&store, 1);
    assert_eq!(taken.attempt, 2);
    park(db, &store, &taken);
    db.later(6);
    assert_eq!(take(&store, 1).attempt, 3);
}

fn withdrawals_of_a_parked_pool_keep_their_order(db: &Database) {
    let store = db.open();
    schedule(&store, &["a", "b", "c", "b", "a"]);
    park_next(db, &store, 1);
    park_next(db, &store, 2);
    pay_next(&store, 3);
    takes_none(&store);
    db.later(6);
    pay_next(&store, 1);
    pay_next(&store, 2);
    pay_next(&store, 4);
    pay_next(&store, 5);
}

fn whole_account_parked_stops_all_pools(db: &Database) {
    let store = db.open();
    schedule(&store, &["a", "b", "b"]);
    let first = take(&store, 1);
    end_as(db, &store, &first, Outcome::Parked);
    takes_none(&store);
    db.later(6);
    park_next(db, &store, 1);
    let second = take(&store, 2);
    db.later(6);
    end_as(db, &store, &second, Outcome::Parked);
    let first = take(&store, 1);
    end_as(db, &store, &first, Outcome::Parked);
    takes_none(&store);
    db.later(4);
    takes_none(&store);
    db.later(2);
    pay_next(&store, 1);
    pay_next(&store, 2);
    pay_next(&store, 3);
}

fn nothing_passes_one_that_was_sent(db: &Database) {
    let store = db.open();
    schedule(&store, &["a", "b"]);
    park_next(db, &store, 1);
    db.later(6);
    let first = accept_next(&store, 1);
    takes_none(&store);
    db.later(60);
    takes_none(&store);
    store.status(&first, LedgerStatus::Committed);
    pay_next(&store, 2);
}

/// Parks withdrawal 1 and signs withdrawal 2 of another pool; then withdrawal 1 is due.
fn sign_beside_a_due_one(db: &Database, store: &TestStore) -> TakenBatch {
    schedule(store, &["a", "b", "b"]);
    park_next(db, store, 1);
    let second = take(store, 2);
    store.sign(&second, 0).unwrap();
    db.later(6);
    second
}

fn act(store: &TestStore, verb: OperatorVerb, number: u128) -> ActionOutcome {
    let (service_id, batch_id) = (service(ACCOUNT), withdrawal_id(number).batch_id(1));
    let target = OperatorTarget::Batch { service_id, batch_id, attempt: None };
    let operator = Operator::program();
    store.act(&OperatorAction { verb, target, reason: None, operator, dry_run: false }).unwrap()
}

/// The process is killed after it has signed, and an operator holds the withdrawal.
fn held_withdrawal_with_a_nonce_stops_all_pools(db: &Database) {
    let store = db.open();
    let second = sign_beside_a_due_one(db, &store);
    store.record_one(happened(&second, Event::OwnerLost { attempt: second.attempt }));
    store.evidence(&second, Evidence::Repeatable);
    act(&store, OperatorVerb::Hold, 2);
    takes_none(&store);
    act(&store, OperatorVerb::Release, 2);
    take(&store, 2);
}

fn cancelled_withdrawal_with_a_nonce_is_next(db: &Database) {
    let store = db.open();
    let second = sign_beside_a_due_one(db, &store);
    end_as(db, &store, &second, Outcome::NotSent);
    store.cancel_withdrawal(&withdrawal_id(2), &by_program()).unwrap();
    take(&store, 2);
}

/// A node has lost a transaction that bids more than a lowered cap.
fn refused_withdrawal_with_a_nonce_stops_all_pools(db: &Database) {
    let store = db.open();
    let second = sign_beside_a_due_one(db, &store);
    end_as(db, &store, &second, Outcome::Parked);
    takes_none(&store);
    db.later(6);
    take(&store, 2);
}

/// The withdrawal under way has the lowest nonce, so all others are behind it.
fn withdrawals_signed_ahead_go_before_a_parked_one(db: &Database) {
    let store = db.open();
    schedule(&store, &["a", "b", "c", "b", "c"]);
    park_next(db, &store, 1);
    let head = accept_next(&store, 2);
    let following = find_following(&store, &head);
    assert!(store.sign_following(&following, vec![signed(1, 100), signed(2, 100)]).unwrap());
    assert_eq!(find_following(&store, &head).due_pools, [""; 0]);
    db.later(6);
    assert_eq!(find_following(&store, &head).due_pools, ["a"]);
    commit(&store, &head, 0);
    for (number, nonce) in [(3, 1), (4, 2)] {
        let next = take(&store, number);
        store.outcome(&next, Outcome::Accepted);
        commit(&store, &next, nonce);
    }
    pay_next(&store, 1);
    pay_next(&store, 5);
}

fn withdrawals_signed_ahead_keep_their_order_after_a_restore(db: &Database) {
    let store = db.open();
    schedule(&store, &["a", "b", "b"]);
    park_next(db, &store, 1);
    let head = accept_next(&store, 2);
    assert!(store.sign_following(&find_following(&store, &head), vec![signed(1, 100)]).unwrap());
    db.restored().mark_restored(true, &by_program()).unwrap();
    let evidence = |number: u128, attempt, evidence| {
        let event = Event::Evidence { attempt, evidence };
        let batch_id = withdrawal_id(number).batch_id(1);
        let found = store.record_one(Change::new(service(ACCOUNT), batch_id, event));
        assert!(matches!(found, ChangeOutcome::Applied { .. }), "{found:?}");
    };
    evidence(1, 1, Evidence::Repeatable);
    store.close_as(ACCOUNT, 0, NonceOutcome::Reverted);
    evidence(2, 1, Evidence::Committed);
    db.later(6);
    takes_none(&store);
    evidence(3, 0, Evidence::Repeatable);
    take(&store, 3);
}

/// The first withdrawal of its pool is decided as failed while another pool is paid.
fn nothing_is_signed_ahead_of_an_earlier_withdrawal(db: &Database) {
    let store = db.open();
    schedule(&store, &["a", "a", "b", "b"]);
    let first = take(&store, 1);
    park(db, &store, &first);
    let head = accept_next(&store, 3);
    assert_eq!(numbers(&find_following(&store, &head)), [4]);
    let event = Event::Decided { attempt: first.attempt, decision: Decision::Invalid };
    store.record_one(happened(&first, event));
    assert_eq!(numbers(&find_following(&store, &head)), [0; 0]);
    commit(&store, &head, 0);
    pay_next(&store, 2);
    pay_next(&store, 4);
}

fn cancelled_parked_withdrawal_is_not_overtaken(db: &Database) {
    let store = db.open();
    schedule(&store, &["a", "b", "b"]);
    park_next(db, &store, 1);
    let head = accept_next(&store, 2);
    assert_eq!(numbers(&find_following(&store, &head)), [3]);
    store.cancel_withdrawal(&withdrawal_id(1), &by_program()).unwrap();
    assert_eq!(numbers(&find_following(&store, &head)), [0; 0]);
    store.status(&head, LedgerStatus::Committed);
    store.reject(&take(&store, 1), "cancelled before anything was signed");
    pay_next(&store, 3);
}

fn new_withdrawal_of_another_pool_is_next(db: &Database) {
    let store = db.open();
    schedule(&store, &["a"]);
    park_next(db, &store, 1);
    store.schedule_all(&[of_pool(2, "a"), of_pool(3, "b"), of_pool(4, "b")]);
    pay_next(&store, 3);
    pay_next(&store, 4);
    takes_none(&store);
    store.schedule_all(&[of_pool(5, "a"), of_pool(6, "b")]);
    pay_next(&store, 6);
    db.later(6);
    pay_next(&store, 1);
    pay_next(&store, 2);
    pay_next(&store, 5);
    store.schedule_all(&[of_pool(7, "a")]);
    pay_next(&store, 7);
}

fn new_withdrawal_does_not_wait_for_a_held_parked_one(db: &Database) {
    let store = db.open();
    schedule(&store, &["a"]);
    park_next(db, &store, 1);
    act(&store, OperatorVerb::Hold, 1);
    db.later(6);
    takes_none(&store);
    store.schedule_all(&[of_pool(2, "b"), of_pool(3, "b")]);
    let second = take(&store, 2);
    store.reject(&second, "refused");
    store.retry_withdrawal(&withdrawal_id(2), &by_program()).unwrap();
    pay_next(&store, 3);
    let second = store.take_one(ACCOUNT);
    assert_eq!(second.batch_id, withdrawal_id(2).batch_id(2));
}

fn find_following(store: &TestStore, head: &TakenBatch) -> FollowingPayments {
    store.following_payments(&head.service_id, &head.batch_id, 10).unwrap().unwrap()
}

fn numbers(following: &FollowingPayments) -> Vec<u128> {
    let ids = following.payments.iter().map(|it| it.payment.withdrawal_id);
    ids.map(|id| u128::from_be_bytes(*id.as_bytes())).collect()
}

fn withdrawals_of_a_parked_pool_are_not_signed_ahead(db: &Database) {
    let store = db.open();
    schedule(&store, &["a", "b", "a", "c", "b", "a"]);
    park_next(db, &store, 1);
    let head = accept_next(&store, 2);
    let following = find_following(&store, &head);
    assert_eq!(numbers(&following), [4, 5]);
    let two = store.following_payments(&head.service_id, &head.batch_id, 1).unwrap().unwrap();
    assert_eq!(numbers(&two), [4]);
    let transactions = vec![signed(1, 100), signed(2, 100)];
    assert!(store.sign_following(&following, transactions).unwrap());
    for (number, nonce) in [(1, None), (3, None), (4, Some(1)), (5, Some(2)), (6, None)] {
        let assigned = store.details_of(number).nonce.map(|nonce| nonce.nonce);
        assert_eq!(assigned, nonce, "{number}");
    }
    assert!(store.replace_following(&find_following(&store, &head), vec![signed(2, 200)]).unwrap());
}

/// After the first withdrawal of a pool, the next one of the pool comes before later ones of other pools.
fn first_of_a_pool_follows_in_its_order(db: &Database) {
    let store = db.open();
    schedule(&store, &["a", "a", "b", "b"]);
    park_next(db, &store, 1);
    db.later(6);
    let first = accept_next(&store, 1);
    assert_eq!(numbers(&find_following(&store, &first)), [2, 3, 4]);
    store.status(&first, LedgerStatus::Committed);
    let second = accept_next(&store, 2);
    assert_eq!(numbers(&find_following(&store, &second)), [3, 4]);
    store.status(&second, LedgerStatus::Committed);
    pay_next(&store, 3);
    pay_next(&store, 4);
}

fn only_the_parked_withdrawal_is_listed_as_parked(db: &Database) {
    let store = db.open();
    schedule(&store, &["a", "b", "a", "b"]);
    park_next(db, &store, 1);
    let state = |number| WithdrawalState::of(&store.details_of(number));
    let states = || [1, 2, 3, 4].map(state);
    use WithdrawalState::{Parked, Pending, Scheduled};
    assert_eq!(states(), [Parked, Scheduled, Scheduled, Scheduled]);
    let second = take(&store, 2);
    let signed = store.sign(&second, 0).unwrap();
    store.mark_sent(&signed.signed.hash, None).unwrap();
    store.outcome(&second, Outcome::Accepted);
    assert_eq!(states(), [Parked, Pending, Scheduled, Scheduled]);
    let [queue] = store.gas_admin_queues(&[service(ACCOUNT)]).unwrap().try_into().unwrap();
    assert_eq!((queue.open, queue.parked, queue.in_progress, queue.waiting), (4, 1, 1, 2));
    assert_eq!(queue.last_error.as_deref(), Some("the gas price is too high"));
}

fn parked_withdrawals_can_be_moved(db: &Database) {
    let store = db.open();
    schedule(&store, &["a", "b", "a", "b", "b"]);
    park_next(db, &store, 1);
    let other = service("eip155:1:0x0b");
    let to = |pool: &str| (pool == "a").then(|| other.clone());
    let step = store.move_withdrawals(&service(ACCOUNT), &to, None, 100, &by_program()).unwrap();
    assert_eq!((step.moved.len(), step.kept.len()), (2, 0));
    pay_next(&store, 2);
    let to = |_: &str| Some(other.clone());
    let step = store.move_withdrawals(&service(ACCOUNT), &to, None, 100, &by_program()).unwrap();
    assert_eq!((step.moved.len(), step.kept.len()), (2, 0));
    takes_none(&store);
    assert_eq!(store.open_batches(&other, 10).unwrap().len(), 4);
    store.schedule_all(&[of_pool(6, "b")]);
    pay_next(&store, 6);
}

fn restored_database_puts_all_lanes_in_doubt(db: &Database) {
    let store = db.open();
    schedule(&store, &["a", "b", "b"]);
    park_next(db, &store, 1);
    let payment = || store.payment(&service(ACCOUNT), &withdrawal_id(2).batch_id(1));
    assert!(!payment().unwrap().unwrap().is_restored);
    db.restored().mark_restored(true, &by_program()).unwrap();
    assert!(payment().unwrap().unwrap().is_restored);
    db.later(6);
    takes_none(&store);
    let states = store.open_batches(&service(ACCOUNT), 10).unwrap();
    let states: Vec<_> = states.iter().map(|batch| batch.progress.state).collect();
    assert_eq!(states, [BatchState::InDoubt, BatchState::InDoubt, BatchState::New]);
}

fn withdrawals_wait_for_those_of_their_pool(db: &Database) {
    let store = db.open();
    schedule(&store, &["a", "b", "b", "a"]);
    park_next(db, &store, 1);
    let head_of = |number: u128| {
        let batch_id = withdrawal_id(number).batch_id(1);
        let details = store.details(&service(ACCOUNT), &batch_id).unwrap().unwrap();
        let ahead = store.ahead(&service(ACCOUNT), &[details.batch.created_at]).unwrap();
        let heads = [details.ahead, ahead.into_iter().next().unwrap()];
        let heads = heads.map(|ahead| ahead.map(|ahead| ahead.head.unwrap().batch_id));
        assert_eq!(heads[0], heads[1], "{number}");
        let is = |other: &u128| heads[0] == Some(withdrawal_id(*other).batch_id(1));
        (1..=4).find(is)
    };
    assert_eq!([1, 2, 3, 4].map(head_of), [None, None, Some(2), Some(1)]);
    accept_next(&store, 2);
    assert_eq!([1, 2, 3, 4].map(head_of), [None, None, Some(2), Some(1)]);
}

fn open_withdrawals_are_counted_once(db: &Database) {
    let store = db.open();
    schedule(&store, &["a", "b", "b", "a"]);
    park_next(db, &store, 1);
    let open = store.open_withdrawals().unwrap();
    let counts: Vec<_> = open.iter().map(|it| (it.pool.as_str(), it.open)).collect();
    assert_eq!(counts, [("a", 2), ("b", 2)]);
}

/// What happens next in a property test.
#[derive(Debug, Clone)]
enum Step {
    Schedule(usize),
    /// The gate of a pool is opened or closed.
    Gate(usize, bool),
    /// The gate of the account is opened or closed.
    AccountGate(bool),
    /// A batch is taken and, unless a gate is closed, signed and sent.
    Submit,
    /// The process is killed while it submits, before or after it has signed.
    KillWhileSubmitting(bool),
    /// A node refuses the transaction.
    Refuse(Outcome),
    /// The withdrawal under way is looked at, and those after it are signed.
    SignAhead,
    /// An operator holds a withdrawal.
    Hold(u128),
    ReleaseAll,
    Cancel(u128),
    Commit,
    Fail,
    Later,
}

const POOLS: [&str; 3] = ["a", "b", "c"];

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let pool = 0..POOLS.len();
    let refusals = prop::sample::select(vec![Outcome::Parked, Outcome::Refused, Outcome::NotSent]);
    let step = prop_oneof![
        4 => pool.clone().prop_map(Step::Schedule),
        2 => (pool, any::<bool>()).prop_map(|(pool, open)| Step::Gate(pool, open)),
        1 => prop::bool::weighted(0.7).prop_map(Step::AccountGate),
        6 => Just(Step::Submit),
        1 => any::<bool>().prop_map(Step::KillWhileSubmitting),
        1 => refusals.prop_map(Step::Refuse),
        1 => (1..20_u128).prop_map(Step::Hold),
        1 => Just(Step::ReleaseAll),
        1 => (1..20_u128).prop_map(Step::Cancel),
        3 => Just(Step::SignAhead),
        5 => Just(Step::Commit),
        1 => Just(Step::Fail),
        2 => Just(Step::Later),
    ];
    vec(step, 1..60)
}

/// A gas admin with several pools, driven like the adapter does.
struct Account<'a> {
    db: &'a Database,
    store: TestStore,
    is_open: [bool; POOLS.len()],
    account_is_open: bool,
    scheduled: Vec<usize>,
    under_way: Option<TakenBatch>,
    /// The nonces, by withdrawal.
    nonces: BTreeMap<u128, u64>,
    held: BTreeSet<u128>,
    cancelled: BTreeSet<u128>,
    /// When the withdrawals whose pools are parked are tried again.
    parked: BTreeMap<u128, Timestamp>,
    ended: Vec<u128>,
}

impl<'a> Account<'a> {
    fn new(db: &'a Database, store: TestStore) -> Self {
        Self {
            db,
            store,
            is_open: [true; POOLS.len()],
            account_is_open: true,
            scheduled: Vec::new(),
            under_way: None,
            nonces: BTreeMap::new(),
            held: BTreeSet::new(),
            cancelled: BTreeSet::new(),
            parked: BTreeMap::new(),
            ended: Vec::new(),
        }
    }

    fn pool_of(&self, number: u128) -> usize {
        self.scheduled[usize::try_from(number).unwrap() - 1]
    }

    fn apply(&mut self, step: &Step) {
        match step {
            Step::Schedule(pool) => {
                self.scheduled.push(*pool);
                let number = u128::try_from(self.scheduled.len()).unwrap();
                self.store.schedule_all(&[of_pool(number, POOLS[*pool])]);
            }
            Step::Gate(pool, open) => self.is_open[*pool] = *open,
            Step::AccountGate(open) => self.account_is_open = *open,
            Step::Submit => self.submit(),
            Step::KillWhileSubmitting(signs) => self.kill_while_submitting(*signs),
            Step::Refuse(outcome) => self.refuse(*outcome),
            Step::SignAhead => self.sign_ahead(),
            Step::Hold(number) => self.hold(*number),
            Step::ReleaseAll => self.release_all(),
            Step::Cancel(number) => self.cancel(*number),
            Step::Commit => self.end(LedgerStatus::Committed),
            Step::Fail => self.end(LedgerStatus::Invalid),
            Step::Later => drop(self.db.later(6)),
        }
        self.check();
    }

    fn take(&mut self) -> Option<TakenBatch> {
        let taken = self.store.take(&[ACCOUNT]);
        assert!(taken.len() <= usize::from(self.under_way.is_none()), "{taken:?}");
        let number = number_of(taken.first()?);
        assert!(!self.held.contains(&number), "{number} is held");
        self.parked.remove(&number);
        taken.into_iter().next()
    }

    fn submit(&mut self) {
        if let Some(taken) = self.take().filter(|taken| self.is_signed(taken)) {
            self.store.outcome(&taken, Outcome::Accepted);
            self.under_way = Some(taken);
        }
    }

    fn refuse(&mut self, outcome: Outcome) {
        if let Some(taken) = self.take().filter(|taken| self.is_signed(taken)) {
            end_as(self.db, &self.store, &taken, outcome);
        }
    }

    /// Whether a taken withdrawal has a nonce or gets one. Otherwise its attempt ends.
    fn is_signed(&mut self, taken: &TakenBatch) -> bool {
        let number = number_of(taken);
        if self.nonces.contains_key(&number) {
            return true;
        }
        if self.cancelled.contains(&number) {
            self.store.reject(taken, "cancelled before anything was signed");
            self.ended.push(number);
        } else if !self.account_is_open {
            end_as(self.db, &self.store, taken, Outcome::Parked);
        } else if !self.is_open[self.pool_of(number)] {
            park(self.db, &self.store, taken);
            self.parked.insert(number, self.db.now().plus(GATE));
        } else {
            self.sign(taken);
            return true;
        }
        false
    }

    fn sign(&mut self, taken: &TakenBatch) {
        let number = number_of(taken);
        let overtaken = self.startable().find(|parked| *parked < number);
        assert_eq!(overtaken, None, "is overtaken by {number}");
        let nonce = self.store.sign(taken, 0).unwrap().signed.nonce;
        self.add_nonce(number, nonce);
    }

    /// The withdrawals of parked pools that are due and pass their gates.
    fn startable(&self) -> impl Iterator<Item = u128> {
        let due = self.parked.iter().filter(|(_, due)| **due <= self.db.now());
        let can_start = |number: &u128| !self.held.contains(number) && self.passes(*number);
        due.map(|(number, _)| *number).filter(can_start)
    }

    fn passes(&self, number: u128) -> bool {
        self.account_is_open && self.is_open[self.pool_of(number)]
    }

    fn add_nonce(&mut self, number: u128, nonce: u64) {
        assert_eq!(usize::try_from(nonce).unwrap(), self.nonces.len(), "nonces have no gap");
        assert_eq!(self.nonces.insert(number, nonce), None, "{number} has two nonces");
    }

    fn kill_while_submitting(&mut self, signs: bool) {
        let Some(taken) = self.take() else { return };
        let number = number_of(&taken);
        let may_sign = self.passes(number) && !self.cancelled.contains(&number);
        if signs && may_sign && !self.nonces.contains_key(&number) {
            self.sign(&taken);
        }
        let lost = Event::OwnerLost { attempt: taken.attempt };
        self.store.record_one(happened(&taken, lost));
        assert!(self.take().is_none(), "nothing is taken before it is known what became of it");
        self.store.evidence(&taken, Evidence::Repeatable);
    }

    fn hold(&mut self, number: u128) {
        if let ActionOutcome::Done(_) = act(&self.store, OperatorVerb::Hold, number) {
            self.held.insert(number);
        }
    }

    fn release_all(&mut self) {
        for number in mem::take(&mut self.held) {
            act(&self.store, OperatorVerb::Release, number);
            self.parked.remove(&number);
        }
    }

    fn cancel(&mut self, number: u128) {
        let cancelled =
            self.store.cancel_withdrawal(&withdrawal_id(number), &by_program()).unwrap();
        if let CancelOutcome::Requested { .. } = cancelled {
            self.cancelled.insert(number);
            self.parked.remove(&number);
        }
    }

    fn sign_ahead(&mut self) {
        let Some(head) = &self.under_way else { return };
        let following = find_following(&self.store, head);
        let is_open = |pool: &String| self.is_open[POOLS.iter().position(|it| it == pool).unwrap()];
        if !following.is_under_way || following.due_pools.iter().any(is_open) {
            return;
        }
        let unsigned = following
            .unsigned()
            .map(|it| u128::from_be_bytes(*it.payment.withdrawal_id.as_bytes()));
        let passing: Vec<u128> = unsigned.take_while(|number| self.passes(*number)).collect();
        let all = (following.next_nonce..).zip(&passing).map(|(nonce, _)| signed(nonce, 100));
        let all: Vec<_> = all.collect();
        if all.is_empty() {
            return;
        }
        assert_eq!(self.startable().next(), None, "is overtaken by {passing:?}");
        assert!(self.store.sign_following(&following, all.clone()).unwrap());
        for (number, signed) in passing.into_iter().zip(all) {
            self.add_nonce(number, signed.nonce);
        }
    }

    fn end(&mut self, status: LedgerStatus) {
        let Some(taken) = self.under_way.take() else { return };
        let number = number_of(&taken);
        self.held.remove(&number);
        let outcome = match status {
            LedgerStatus::Committed => {
                NonceOutcome::Withdrawn { withdrawal_id: number.to_string() }
            }
            _ => NonceOutcome::Reverted,
        };
        self.store.close_as(ACCOUNT, self.nonces[&number], outcome);
        let ended = self.store.status(&taken, status);
        assert!(matches!(ended, ChangeOutcome::Applied { .. }), "{ended:?}");
        self.ended.push(number);
    }

    /// Asserts that each pool is paid in its order, and all transactions that are not final are followed.
    fn check(&self) {
        for pool in 0..POOLS.len() {
            let of_pool = |number: &&u128| self.pool_of(**number) == pool;
            let ended: Vec<_> = self.ended.iter().filter(of_pool).collect();
            assert!(ended.is_sorted(), "{ended:?} of pool {pool}");
            let signed = self.nonces.iter().filter(|(number, _)| of_pool(number));
            let nonces: Vec<_> = signed.map(|(_, nonce)| nonce).collect();
            assert!(nonces.is_sorted(), "{nonces:?} of pool {pool}");
        }
        let Some(head) = &self.under_way else { return };
        let following = self.store.following_payments(&head.service_id, &head.batch_id, 1_000);
        let following = numbers(&following.unwrap().unwrap());
        assert!(following.is_sorted(), "{following:?}");
        let followed: BTreeSet<u128> = following.into_iter().chain([number_of(head)]).collect();
        let is_open = |number: &&u128| !self.ended.contains(number);
        let open: Vec<_> = self.nonces.keys().filter(is_open).collect();
        assert!(open.iter().all(|number| followed.contains(number)), "{open:?}, {followed:?}");
        let lowest = open.into_iter().min_by_key(|number| self.nonces[number]);
        assert_eq!(lowest, Some(&number_of(head)), "the lowest nonce is under way");
    }

    /// Pays all withdrawals that can be paid with these gates. Returns those that are left.
    fn pay_all(&mut self) -> Vec<u128> {
        self.account_is_open = true;
        self.release_all();
        for _ in 0..=self.scheduled.len() * 2 {
            for step in [Step::Later, Step::Commit, Step::Submit, Step::Commit, Step::Submit] {
                self.apply(&step);
            }
        }
        self.apply(&Step::Commit);
        let all = 1..=u128::try_from(self.scheduled.len()).unwrap();
        all.filter(|number| !self.ended.contains(number)).collect()
    }
}

fn any_sequence_of_gates_pays_each_pool_in_order(db: &Database) {
    let checked = cases(40).run(&(steps(), 0..POOLS.len()), |(steps, closed)| {
        let db = db.another();
        let mut account = Account::new(&db, db.open());
        steps.iter().for_each(|step| account.apply(step));
        account.is_open = [true; POOLS.len()];
        account.is_open[closed] = false;
        let left = account.pay_all();
        let of_closed = left.iter().all(|number| account.pool_of(*number) == closed);
        assert!(of_closed, "a closed pool {closed} stops others: {left:?}");
        account.is_open[closed] = true;
        assert_eq!(account.pay_all(), [0; 0]);
        Ok(())
    });
    checked.unwrap();
}
