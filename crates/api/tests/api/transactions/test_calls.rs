use std::sync::Arc;

use grid_batch_core::Timestamp;
use grid_batch_core::batches::BatchState;
use grid_batch_withdrawals::{
    Call, CallRequest, Withdrawal, WithdrawalDetails, WithdrawalId, WithdrawalKind,
    mocks::{MockCallRules, MockWithdrawalRules, MockWithdrawalStore},
};

use crate::{
    mock_stores::{MockServer, builder_with_withdrawals, details_of},
    test_server::service,
};

pub const PATH: &str = "/v1/transactions";
pub const ACCOUNT: &str = "eip155:1:0xad";
pub const OTHER_ACCOUNT: &str = "eip155:1:0xbe";
pub const ID: WithdrawalId = WithdrawalId::from_bytes([1; 16]);
pub const REASON: &[u8] = br#"{"reason":"a test"}"#;

/// Accounts and addresses of tests: the accounts `payer` and `other`, and addresses that start with `0x`, in any case.
pub fn addresses() -> MockCallRules {
    let mut rules = MockCallRules::new();
    rules.expect_account().returning(|text| match text {
        "payer" => Ok(service(ACCOUNT)),
        "other" => Ok(service(OTHER_ACCOUNT)),
        text => Err(format!("{text:?} is no account")),
    });
    rules.expect_address().returning(|text| match text.to_lowercase() {
        address if address.starts_with("0x") => Ok(address),
        _ => Err(format!("{text:?} is no address")),
    });
    rules
}

/// The same, and rules that accept every call.
pub fn rules() -> MockCallRules {
    let mut rules = addresses();
    rules.expect_call().returning(|_, request| Ok(canonical(request)));
    rules.expect_day_limits().returning(|_, _, call| match call.to.as_deref() {
        Some("0xforbidden") => Err("not there".to_owned()),
        _ => Ok(Vec::new()),
    });
    rules
}

fn canonical(request: &CallRequest) -> Call {
    Call {
        to: request.to.as_deref().map(str::to_lowercase),
        value: request.value.clone().unwrap_or_else(|| "0".to_owned()),
        data: request.data.clone().unwrap_or_else(|| "0x".to_owned()),
        gas_limit: request.gas_limit,
        maximum_gas_price: request.maximum_gas_price.as_ref().map(|_| 30_500_000_000),
        deadline: request.deadline.map(Timestamp::as_micros),
        label: request.label.clone(),
        abi: request.abi.clone(),
        day_limits: Vec::new(),
    }
}

pub fn server(store: MockWithdrawalStore) -> MockServer {
    server_with_rules(store, rules())
}

pub fn server_with_rules(store: MockWithdrawalStore, rules: MockCallRules) -> MockServer {
    let builder = builder_with_withdrawals(store, MockWithdrawalRules::new());
    MockServer::new(builder.with_calls(Arc::new(rules)))
}

/// A stored transfer.
pub fn transfer(id: WithdrawalId) -> Withdrawal {
    let (to, data) = (Some("0xcc".to_owned()), "0x".to_owned());
    let call = Call { to, value: "5".to_owned(), data, ..Call::default() };
    Withdrawal::of_call(id, service(ACCOUNT), call, None)
}

/// A stored withdrawal from a pool.
pub fn withdrawal(id: WithdrawalId) -> Withdrawal {
    Withdrawal {
        id,
        service_id: service(ACCOUNT),
        kind: WithdrawalKind::Propose,
        reward_id: None,
        pool: "0xaa".to_owned(),
        beneficiary: "0xcc".to_owned(),
        amount: "5".to_owned(),
        idempotency_key: None,
        call: None,
        trace: None,
    }
}

/// A transfer whose batch is in this state.
pub fn details(id: WithdrawalId, state: BatchState) -> WithdrawalDetails {
    details_of(transfer(id), state)
}

/// A store that has only this.
pub fn store_with(details: WithdrawalDetails) -> MockWithdrawalStore {
    let mut store = MockWithdrawalStore::new();
    let id = details.withdrawal.id;
    store.expect_withdrawal().returning(move |asked| Ok((*asked == id).then(|| details.clone())));
    store
}

pub fn path_of(id: WithdrawalId) -> String {
    format!("{PATH}/{id}")
}
