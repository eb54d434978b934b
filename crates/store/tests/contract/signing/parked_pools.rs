//! Withdrawals of a parked pool do not stop those of the other pools of their gas admin.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use grid_batch_core::{
    BatchState, Change, ChangeOutcome, Event, Evidence, LedgerStatus, Outcome, TakenBatch,
};
use grid_batch_store::Store;
use grid_batch_withdrawals::{
    FollowingPayments, NonceOutcome, SigningStore, Withdrawal, WithdrawalState,
};
use proptest::{collection::vec, prelude::*};

use crate::{
    fixture::{Database, StoreExt, TestStore, cases, happened, on_both, service},
    withdrawals::fixture::{ACCOUNT, WithdrawalsExt, signed, withdrawal, withdrawal_id},
};

on_both! {
    withdrawal_of_another_pool_is_next,
    parked_withdrawal_is_tried_first_when_it_is_due,
    attempts_of_a_parked_withdrawal_are_kept,
    withdrawals_of_a_parked_pool_keep_their_order,
    whole_account_parked_stops_all_pools,
    nothing_passes_one_that_was_sent,
    new_withdrawal_of_another_pool_waits_for_one_attempt,
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

/// Takes the next withdrawal, which must be this one, and has it parked for its pool.
fn park_next(db: &Database, store: &TestStore, number: u128) {
    park(db, store, &take(store, number));
}

fn accept_next(store: &TestStore, number: u128) -> TakenBatch {
    let taken = take(store, number);
    store.sign(&taken, 0).unwrap();
    store.outcome(&taken, Outcome::Accepted);
    taken
}

fn pay_next(store: &TestStore, number: u128) {
    let taken = accept_next(store, number);
    let ended = store.status(&taken, LedgerStatus::Committed);
    assert!(matches!(ended, ChangeOutcome::Applied { .. }), "{ended:?}");
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

fn new_withdrawal_of_another_pool_waits_for_one_attempt(db: &Database) {
    let store = db.open();
    schedule(&store, &["a", "b"]);
    park_next(db, &store, 1);
    pay_next(&store, 2);
    store.schedule_all(&[of_pool(3, "a"), of_pool(4, "b")]);
    takes_none(&store);
    db.later(6);
    park_next(db, &store, 1);
    pay_next(&store, 4);
    takes_none(&store);
    db.later(6);
    pay_next(&store, 1);
    pay_next(&store, 3);
    store.schedule_all(&[of_pool(5, "a")]);
    pay_next(&store, 5);
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

/// After the first of a pool, the next one of the pool comes before later ones of other pools.
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
    let step = store.move_withdrawals(&service(ACCOUNT), &to, None, 100).unwrap();
    assert_eq!((step.moved.len(), step.kept.len()), (2, 0));
    pay_next(&store, 2);
    let to = |_: &str| Some(other.clone());
    let step = store.move_withdrawals(&service(ACCOUNT), &to, None, 100).unwrap();
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
    Store::mark_restored(&db.url(), db.options(), true).unwrap();
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
    /// The process is killed while it submits, before it has signed or after that.
    KillWhileSubmitting(bool),
    /// The present one that is under way is looked at: those behind it are signed.
    SignAhead,
    Commit,
    Fail,
    Later,
}

const POOLS: [&str; 3] = ["a", "b", "c"];

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let pool = 0..POOLS.len();
    let step = prop_oneof![
        4 => pool.clone().prop_map(Step::Schedule),
        2 => (pool, any::<bool>()).prop_map(|(pool, open)| Step::Gate(pool, open)),
        1 => prop::bool::weighted(0.7).prop_map(Step::AccountGate),
        6 => Just(Step::Submit),
        1 => any::<bool>().prop_map(Step::KillWhileSubmitting),
        3 => Just(Step::SignAhead),
        5 => Just(Step::Commit),
        1 => Just(Step::Fail),
        2 => Just(Step::Later),
    ];
    vec(step, 1..60)
}

/// A gas admin with several pools, as the adapter drives it.
struct Account<'a> {
    db: &'a Database,
    store: TestStore,
    is_open: [bool; POOLS.len()],
    account_is_open: bool,
    scheduled: Vec<usize>,
    under_way: Option<TakenBatch>,
    /// The nonces, by withdrawal.
    nonces: BTreeMap<u128, u64>,
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
            Step::SignAhead => self.sign_ahead(),
            Step::Commit => self.end(LedgerStatus::Committed),
            Step::Fail => self.end(LedgerStatus::Invalid),
            Step::Later => drop(self.db.later(6)),
        }
        self.check();
    }

    fn take(&self) -> Option<TakenBatch> {
        let taken = self.store.take(&[ACCOUNT]);
        assert!(taken.len() <= usize::from(self.under_way.is_none()), "{taken:?}");
        taken.into_iter().next()
    }

    fn submit(&mut self) {
        let Some(taken) = self.take() else { return };
        let number = number_of(&taken);
        if !self.nonces.contains_key(&number) {
            if !self.account_is_open {
                end_as(self.db, &self.store, &taken, Outcome::Parked);
                return;
            }
            if !self.is_open[self.pool_of(number)] {
                park(self.db, &self.store, &taken);
                return;
            }
            self.sign(&taken);
        }
        self.store.outcome(&taken, Outcome::Accepted);
        self.under_way = Some(taken);
    }

    fn sign(&mut self, taken: &TakenBatch) {
        let nonce = self.store.sign(taken, 0).unwrap().signed.nonce;
        self.add_nonce(number_of(taken), nonce);
    }

    fn add_nonce(&mut self, number: u128, nonce: u64) {
        assert_eq!(usize::try_from(nonce).unwrap(), self.nonces.len(), "nonces have no gap");
        assert_eq!(self.nonces.insert(number, nonce), None, "{number} has two nonces");
    }

    fn kill_while_submitting(&mut self, signs: bool) {
        let Some(taken) = self.take() else { return };
        let number = number_of(&taken);
        let may_sign = self.account_is_open && self.is_open[self.pool_of(number)];
        if signs && may_sign && !self.nonces.contains_key(&number) {
            self.sign(&taken);
        }
        let lost = Event::OwnerLost { attempt: taken.attempt };
        self.store.record_one(happened(&taken, lost));
        assert!(self.take().is_none(), "nothing is taken before it is known what became of it");
        self.store.evidence(&taken, Evidence::Repeatable);
    }

    fn sign_ahead(&mut self) {
        let Some(head) = &self.under_way else { return };
        let following = find_following(&self.store, head);
        let unsigned = following
            .unsigned()
            .map(|it| u128::from_be_bytes(*it.payment.withdrawal_id.as_bytes()));
        let passes = |number: &u128| self.account_is_open && self.is_open[self.pool_of(*number)];
        let passing: Vec<u128> = unsigned.take_while(passes).collect();
        let all = (following.next_nonce..).zip(&passing).map(|(nonce, _)| signed(nonce, 100));
        let all: Vec<_> = all.collect();
        if all.is_empty() {
            return;
        }
        assert!(self.store.sign_following(&following, all.clone()).unwrap());
        for (number, signed) in passing.into_iter().zip(all) {
            self.add_nonce(number, signed.nonce);
        }
    }

    fn end(&mut self, status: LedgerStatus) {
        let Some(taken) = self.under_way.take() else { return };
        let number = number_of(&taken);
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

    /// Each pool is paid in its order, and all transactions that are not final are followed.
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
    }

    /// Pays what can be paid with these gates. Returns the withdrawals that are left.
    fn pay_all(&mut self) -> Vec<u128> {
        self.account_is_open = true;
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
