//! A chain with a pool, a proxy in front of its node, an adapter, and a manual clock.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU8, Ordering},
    },
    time::Duration,
};

use alloy_primitives::hex;
use grid_batch_core::batches::{BatchState, LedgerStatus, StatusReport};
use grid_batch_core::evidence::{Evidence, UnresolvedBatch};
use grid_batch_core::ledger::{AttemptId, Ledger, Outcome, Submission, SubmissionAnswer};
use grid_batch_core::{BatchResult, Clock, ManualClock, ScopeId, ServiceId, Timestamp};
use grid_batch_evm::{AccountScopeId, Address, Evm, EvmOptions, GasAdminKey, PoolRules};
use grid_batch_nodes::StatusUrlResolver;
use grid_batch_test_chain::{Account, Anvil, AnvilOptions, FaultProxy, Mining, Poll, Pool};
use grid_batch_withdrawals::{AssignedNonce, Call, NonceUse, Payment, SigningStore, WithdrawalId};
use serde_json::{Value, json};

use crate::memory_store::MemoryStore;

pub const SEND: &str = "eth_sendRawTransaction";
pub const RESEND_AFTER: Duration = Duration::from_secs(30);

pub struct Harness {
    pub chain: Anvil,
    pub proxy: FaultProxy,
    pub pool: Pool,
    pub store: Arc<MemoryStore>,
    pub clock: Arc<ManualClock>,
    pub evm: Evm,
    options: EvmOptions,
    scheduled: AtomicU8,
}

/// The nodes of the chain.
#[derive(Debug)]
struct Nodes(Vec<String>);

impl StatusUrlResolver for Nodes {
    fn status_urls(&self, _service_id: &str, _batch_id: &str) -> Vec<String> {
        self.0.clone()
    }
}

impl Harness {
    /// A chain that mines on request, and an adapter with one confirmation.
    pub fn new() -> Self {
        Self::with(|_| {}, |_| {})
    }

    pub fn with_options(set: impl FnOnce(&mut EvmOptions)) -> Self {
        Self::with(|_| {}, set)
    }

    pub fn with(
        set_chain: impl FnOnce(&mut AnvilOptions),
        set: impl FnOnce(&mut EvmOptions),
    ) -> Self {
        let mut chain = AnvilOptions { mining: Mining::Manual, ..AnvilOptions::default() };
        set_chain(&mut chain);
        let chain = Anvil::start(&chain).unwrap();
        let proxy = FaultProxy::start(chain.url()).unwrap();
        let pool = Pool::deploy(&chain, &chain.accounts()[0]).unwrap();
        let clock = Arc::new(ManualClock::at(Timestamp::from_micros(1_700_000_000_000_000)));
        let store = Arc::new(MemoryStore::new(clock.clone()));
        let admin = key_of(&chain.accounts()[0]);
        let account = AccountScopeId::new(31_337, admin.address());
        let pools = [pool.address().parse().unwrap(), Address::repeat_byte(7)];
        let mut options = EvmOptions {
            signers: vec![Arc::new(admin)],
            rules: PoolRules::new(pools.map(|pool| (pool, account.clone()))),
            confirmations: 1,
            in_flight: 1,
            resend_after: RESEND_AFTER,
            clock: clock.clone(),
            ..EvmOptions::new(31_337, "200".parse().unwrap())
        };
        set(&mut options);
        let evm = adapter(&options, &store, &proxy);
        let scheduled = AtomicU8::new(0);
        Self { chain, proxy, pool, store, clock, evm, options, scheduled }
    }

    /// Creates the adapter again with other options, as after a restart.
    pub fn restart_with(&mut self, set: impl FnOnce(&mut EvmOptions)) {
        set(&mut self.options);
        self.evm = adapter(&self.options, &self.store, &self.proxy);
    }

    /// Creates the adapter again with these nodes.
    pub fn use_nodes(&mut self, urls: &[&str]) {
        let nodes = Nodes(urls.iter().map(ToString::to_string).collect());
        self.evm = Evm::new(self.options.clone(), self.store.clone(), Arc::new(nodes)).unwrap();
    }

    pub fn admin(&self) -> &Account {
        &self.chain.accounts()[0]
    }

    pub fn beneficiary(&self) -> &str {
        &self.chain.accounts()[9].address
    }

    pub fn scope(&self) -> AccountScopeId {
        AccountScopeId::new(31_337, self.admin().address.parse().unwrap())
    }

    pub fn service_id(&self) -> ServiceId {
        self.scope().service_id().clone()
    }

    pub fn schedule(&self, amount: &str) -> WithdrawalId {
        self.schedule_at(self.pool.address(), amount)
    }

    pub fn schedule_at(&self, pool: &str, amount: &str) -> WithdrawalId {
        self.schedule_payment(pool.to_owned(), amount, None)
    }

    pub fn schedule_call(&self, call: Call) -> WithdrawalId {
        self.schedule_payment(call.gate(), &call.value.clone(), Some(call))
    }

    fn schedule_payment(&self, pool: String, amount: &str, call: Option<Call>) -> WithdrawalId {
        let number = self.scheduled.fetch_add(1, Ordering::Relaxed) + 1;
        let withdrawal_id = WithdrawalId::from_bytes([number; 16]);
        let payment = Payment {
            withdrawal_id,
            generation: 1,
            pool,
            beneficiary: self.beneficiary().to_owned(),
            amount: amount.to_owned(),
            call,
            cancel_requested: false,
            speed_up_at: None,
            is_restored: false,
            nonce: None,
        };
        self.store.schedule(&self.service_id(), payment);
        withdrawal_id
    }

    pub fn cancel(&self, id: WithdrawalId) {
        self.store.change(id, |payment| payment.cancel_requested = true);
    }

    /// Requests that its fees be raised.
    pub fn speed_up(&self, id: WithdrawalId) {
        let now = self.clock.now();
        self.store.change(id, |payment| payment.speed_up_at = Some(now));
    }

    pub fn retry(&self, id: WithdrawalId) {
        self.store.change(id, |payment| {
            payment.generation += 1;
            payment.cancel_requested = false;
        });
    }

    /// The withdrawal's batch for its next attempt.
    pub fn submission(&self, id: WithdrawalId) -> Submission<ServiceId> {
        let (batch_id, attempt_id) = self.store.start_attempt(id);
        Submission::new(batch_id.to_string(), self.service_id(), Vec::new())
            .with_attempt_id(attempt_id)
    }

    pub async fn send(&self, id: WithdrawalId) -> SubmissionAnswer {
        self.evm.send(self.proxy.url(), &self.submission(id)).await
    }

    pub async fn outcome(&self, id: WithdrawalId) -> Outcome {
        self.send(id).await.outcome
    }

    /// Sends a withdrawal that the node accepts.
    pub async fn accept(&self, id: WithdrawalId) {
        let answer = self.send(id).await;
        assert_eq!(answer.outcome, Outcome::Accepted, "{answer:?}");
    }

    /// Sends a withdrawal that the pool refuses until a later block confirms it.
    pub async fn refuse(&self, id: WithdrawalId) -> SubmissionAnswer {
        self.refuse_after(id, Outcome::PoolParked).await
    }

    /// The same with the outcome before the later block.
    pub async fn refuse_after(&self, id: WithdrawalId, parked: Outcome) -> SubmissionAnswer {
        let first = self.send(id).await;
        assert_eq!(first.outcome, parked, "{first:?}");
        assert!(first.message.as_ref().unwrap().contains("a later block"), "{first:?}");
        self.mine(1);
        self.send(id).await
    }

    /// Schedules a withdrawal and sends it; it is pending at the node.
    pub async fn send_withdrawal(&self) -> WithdrawalId {
        let id = self.schedule("500");
        self.accept(id).await;
        id
    }

    pub async fn report(&self, id: WithdrawalId) -> BatchResult<StatusReport> {
        let batch_id = id.batch_id(self.store.generation(id)).to_string();
        let reader = &self.evm;
        let service_id = self.service_id();
        let reports = reader.statuses(service_id.as_str(), &[batch_id]).await;
        reports.map(|mut reports| reports.remove(0))
    }

    pub async fn status(&self, id: WithdrawalId) -> LedgerStatus {
        self.report(id).await.unwrap().status
    }

    /// The reason of an invalid withdrawal.
    pub async fn failure_reason(&self, id: WithdrawalId) -> String {
        let mut report = self.report(id).await.unwrap();
        assert_eq!(report.status, LedgerStatus::Invalid);
        report.receipts.remove(0).error_message
    }

    pub async fn evidence(&self, id: WithdrawalId) -> Evidence {
        let batch = UnresolvedBatch::new(
            self.service_id(),
            id.batch_id(self.store.generation(id)),
            AttemptId { attempt: 1, epoch: 1 },
            BatchState::InDoubt,
        );
        self.evm.find_evidence(&batch).await.unwrap().evidence
    }

    /// Does what the server does, block by block, until the withdrawal has ended, for at most this
    /// many rounds.
    pub async fn follow(&self, id: WithdrawalId, rounds: usize) -> LedgerStatus {
        for _ in 0..rounds {
            self.mine(3);
            let status = self.status(id).await;
            if matches!(status, LedgerStatus::Committed | LedgerStatus::Invalid) {
                return status;
            }
            self.advance_clock(RESEND_AFTER + Duration::from_secs(1));
            if self.evidence(id).await == Evidence::Repeatable {
                self.send(id).await;
            }
        }
        self.status(id).await
    }

    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub fn advance_clock(&self, duration: Duration) {
        self.clock.advance(duration);
    }

    pub fn mine(&self, blocks: u64) {
        self.chain.mine(blocks).unwrap();
    }

    /// Restarts the node, which loses its pending transactions.
    pub fn restart_chain(&self) {
        self.chain.restart().unwrap();
    }

    pub fn polls(&self) -> Vec<Poll> {
        self.pool.polls(&self.chain).unwrap()
    }

    /// The only nonce that was assigned to a withdrawal.
    pub fn nonce(&self, id: WithdrawalId) -> AssignedNonce {
        let mut nonces = self.store.nonces(id);
        assert_eq!(nonces.len(), 1, "{nonces:?}");
        nonces.remove(0)
    }

    /// The hashes of a withdrawal's transactions, the oldest first.
    pub fn hashes(&self, id: WithdrawalId) -> Vec<String> {
        let transactions = self.nonce(id).transactions;
        transactions.iter().map(|it| hex::encode_prefixed(it.signed.hash)).collect()
    }

    /// The hashes of the transactions that were sent to the node, without consecutive repetitions.
    pub fn sent(&self) -> Vec<String> {
        let mut hashes: Vec<_> = self.proxy.sent().into_iter().map(|it| it.hash).collect();
        hashes.dedup();
        hashes
    }

    /// Mines a transaction of another program with the gas admin's key.
    pub fn use_key_elsewhere(&self) {
        self.use_key_elsewhere_with_value(1);
    }

    pub fn use_key_elsewhere_with_value(&self, value: u8) {
        let (admin, value) = (&self.admin().address, format!("{value:#x}"));
        let transfer =
            json!([{"from": admin, "to": self.beneficiary(), "value": value, "gas": "0x5208"}]);
        self.chain.rpc("eth_sendTransaction", transfer).unwrap();
        self.mine(1);
    }

    /// Records that this nonce was used for no withdrawal.
    pub fn settle_elsewhere(&self, nonce: u64) {
        let note = "used by another program".to_owned();
        let elsewhere = NonceUse::Elsewhere { hash: None, note };
        let now = self.clock.now();
        assert!(self.store.settle_nonce(&self.service_id(), nonce, now, &elsewhere).unwrap());
    }

    /// Makes this account the owner of the pool.
    pub fn set_pool_owner(&self, account: usize) {
        let owner = &self.chain.accounts()[account].address[2..];
        let slot = format!("0x{:064x}", 0);
        let owner = json!([self.pool.address(), slot, format!("0x{owner:0>64}")]);
        self.chain.rpc("anvil_setStorageAt", owner).unwrap();
    }

    pub fn transaction(&self, hash: &str) -> Value {
        self.chain.rpc("eth_getTransactionByHash", json!([hash])).unwrap()
    }

    pub fn receipt(&self, hash: &str) -> Value {
        self.chain.rpc("eth_getTransactionReceipt", json!([hash])).unwrap()
    }
}

pub fn key_of(account: &Account) -> GasAdminKey {
    account.secret_key.parse().unwrap()
}

fn adapter(options: &EvmOptions, store: &Arc<MemoryStore>, proxy: &FaultProxy) -> Evm {
    let nodes = Arc::new(Nodes(vec![proxy.url().to_owned()]));
    Evm::new(options.clone(), store.clone(), nodes).unwrap()
}
