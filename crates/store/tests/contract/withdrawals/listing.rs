use grid_batch_withdrawals::{
    NonceOutcome, Reward, RewardId, Withdrawal, WithdrawalFilter, WithdrawalId, WithdrawalKind,
    WithdrawalState, WithdrawalStore, WithdrawalTexts,
};

use super::fixture::{ACCOUNT, WithdrawalsExt, withdrawal, withdrawal_id};
use crate::fixture::{Database, TestStore, on_both, service};

on_both! {
    pages_start_with_the_newest,
    list_entries_match_the_details,
    filters_can_be_combined,
    parts_of_texts_are_found,
    page_examines_a_limited_number_of_withdrawals,
}

fn listed(store: &TestStore, filter: &WithdrawalFilter) -> Vec<WithdrawalId> {
    let page = store.withdrawals(filter, None, 100).unwrap().withdrawals;
    page.into_iter().map(|details| details.withdrawal.id).collect()
}

fn pages_start_with_the_newest(db: &Database) {
    let store = db.open();
    // The order of scheduling differs from the order of ids and of accounts.
    for (number, account) in [(4, "b"), (2, "a"), (5, "c"), (1, "a"), (3, "b")] {
        store.schedule_all(&[withdrawal(account, number)]);
    }
    let mut pages: Vec<Vec<WithdrawalId>> = Vec::new();
    loop {
        let before = pages.last().and_then(|page| page.last());
        let page = store.withdrawals(&WithdrawalFilter::default(), before, 2).unwrap().withdrawals;
        if page.is_empty() {
            break;
        }
        pages.push(page.into_iter().map(|details| details.withdrawal.id).collect());
        // Withdrawals that are scheduled between two page requests do not shift the pages.
        store.schedule_all(&[withdrawal("a", 100 + pages.len() as u128)]);
    }
    let expected = [vec![3, 1], vec![5, 2], vec![4]];
    assert_eq!(pages, expected.map(|page| page.into_iter().map(withdrawal_id).collect::<Vec<_>>()));
    let unknown = withdrawal_id(999);
    assert!(
        store.withdrawals(&Default::default(), Some(&unknown), 9).unwrap().withdrawals.is_empty()
    );
}

fn list_entries_match_the_details(db: &Database) {
    let store = db.open();
    store.schedule_all(&[1, 2, 3].map(|number| withdrawal(ACCOUNT, number)));
    let (taken, nonce) = store.take_and_sign(ACCOUNT);
    store.close_as(ACCOUNT, nonce, NonceOutcome::Reverted);
    store.reject(&taken, "the pool is empty");
    store.take_and_sign(ACCOUNT);

    let mut expected = [3, 2, 1].map(|number| store.details_of(number));
    expected.iter_mut().for_each(|details| details.ahead = None);
    assert!(expected[1..].iter().all(|details| details.nonce.is_some()));
    assert_eq!(store.withdrawals(&Default::default(), None, 9).unwrap().withdrawals, expected);
}

fn filters_can_be_combined(db: &Database) {
    let store = db.open();
    let reward_id = RewardId::from_bytes([1; 16]);
    let (pool, amount) = ("0xother".to_owned(), "1".to_owned());
    let created_at = db.now();
    let reward = Reward { id: reward_id, pool, amount, once_per_member: false, created_at };
    store.add_reward(&reward).unwrap().unwrap();
    let mut all = [1, 2, 3, 4].map(|number| withdrawal("a", number));
    all[1].service_id = service("b");
    all[2].pool = "0xother".to_owned();
    all[3] = Withdrawal {
        kind: WithdrawalKind::Give,
        reward_id: Some(reward_id),
        pool: "0xother".to_owned(),
        ..all[3].clone()
    };
    store.schedule_all(&all);

    let of_pool = WithdrawalFilter { pool: Some("0xother".to_owned()), ..Default::default() };
    let of_a = WithdrawalFilter { service_id: Some(service("a")), ..Default::default() };
    let to_1 = WithdrawalFilter { beneficiary: Some("0xmember1".to_owned()), ..Default::default() };
    let of_reward = WithdrawalFilter { reward_id: Some(reward_id), ..Default::default() };
    let numbers = |filter: &WithdrawalFilter| listed(&store, filter);
    assert_eq!(numbers(&of_pool), [4, 3].map(withdrawal_id));
    assert_eq!(numbers(&of_a), [4, 3, 1].map(withdrawal_id));
    assert_eq!(numbers(&to_1), [1].map(withdrawal_id));
    assert_eq!(numbers(&of_reward), [4].map(withdrawal_id));

    let mut all = WithdrawalFilter { beneficiary: Some("0xmember4".to_owned()), ..of_pool };
    all = WithdrawalFilter { service_id: of_a.service_id, reward_id: of_reward.reward_id, ..all };
    all.states = [WithdrawalState::Scheduled].into();
    assert_eq!(numbers(&all), [4].map(withdrawal_id));
    let before = store.withdrawals(&all, Some(&withdrawal_id(4)), 9).unwrap().withdrawals;
    assert!(before.is_empty());
    all.beneficiary = Some("0xmember3".to_owned());
    assert!(numbers(&all).is_empty());
}

fn containing(contains: WithdrawalTexts) -> WithdrawalFilter {
    WithdrawalFilter { contains, ..WithdrawalFilter::default() }
}

fn parts_of_texts_are_found(db: &Database) {
    let store = db.open();
    let mut all = [1, 2, 3].map(|number| withdrawal("a::eip155:1:0xAb", number));
    all[0].pool = "0xPool12".to_owned();
    all[1].service_id = service("a::eip155:1:0xcd");
    all[2].idempotency_key = Some("Invoice 17".to_owned());
    store.schedule_all(&all);
    let part = |text: &str| Some(text.to_owned());
    let none = WithdrawalTexts::default;
    let cases = [
        (none(), vec![3, 2, 1]),
        (WithdrawalTexts { pool: part("0xpOOL12"), ..none() }, vec![1]),
        (WithdrawalTexts { service_id: part("0xAB"), ..none() }, vec![3, 1]),
        (WithdrawalTexts { beneficiary: part("MEMBER2"), ..none() }, vec![2]),
        (WithdrawalTexts { idempotency_key: part("voice"), ..none() }, vec![3]),
        (WithdrawalTexts { idempotency_key: part("invoice"), ..none() }, vec![]),
        (WithdrawalTexts { service_id: part("ab"), beneficiary: part("2"), ..none() }, vec![]),
        (WithdrawalTexts { label: part(""), ..none() }, vec![]),
    ];
    for (contains, expected) in cases {
        let found = listed(&store, &containing(contains.clone()));
        assert_eq!(found, Vec::from_iter(expected.into_iter().map(withdrawal_id)), "{contains:?}");
    }
    let of_a = WithdrawalTexts { service_id: part("0xab"), ..none() };
    let first = store.withdrawals(&containing(of_a.clone()), None, 1).unwrap();
    assert_eq!((first.withdrawals.len(), first.next), (1, Some(withdrawal_id(3))));
    let last = store.withdrawals(&containing(of_a), first.next.as_ref(), 1).unwrap();
    assert_eq!(last.withdrawals[0].withdrawal.id, withdrawal_id(1));
    assert_eq!(last.next, None);
}

fn page_examines_a_limited_number_of_withdrawals(db: &Database) {
    let store = db.open();
    let mut all: Vec<Withdrawal> = (1..=5_600).map(|number| withdrawal("a", number)).collect();
    all[0].idempotency_key = Some("the oldest".to_owned());
    store.schedule_all(&all);
    let oldest = WithdrawalTexts { idempotency_key: Some("old".into()), ..Default::default() };
    let filter = containing(oldest);
    let first = store.withdrawals(&filter, None, 10).unwrap();
    assert_eq!(first.withdrawals, []);
    let rest = store.withdrawals(&filter, first.next.as_ref(), 10).unwrap();
    assert_eq!((first.next.is_some(), rest.withdrawals.len(), rest.next), (true, 1, None));
}
