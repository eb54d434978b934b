//! The EVM adapter alone, with the store for what it signs: makes a withdrawal from a pool once, and follows it until its
//! transaction is final. The chain is a node of anvil, which `GRID_BATCH_TEST_ANVIL` names or the PATH has.

use std::{error::Error, sync::Arc, time::Duration};

use grid_batch_core::batches::{Change, Event, LedgerStatus};
use grid_batch_core::claims::ClaimKeeper;
use grid_batch_core::ledger::{Ledger, Outcome, Submission};
use grid_batch_core::queue::{RoundStore, TakenBatch};
use grid_batch_evm::{AccountScopeId, Evm, EvmOptions, GasAdminKey, PoolRules, parse_address};
use grid_batch_local_chain::{Account, Anvil, AnvilOptions, Mining, Pool};
use grid_batch_nodes::NodePool;
use grid_batch_store::{ClaimOptions, ClaimStore, Store, StoreOptions};
use grid_batch_withdrawals::{
    Withdrawal, WithdrawalId, WithdrawalKind, WithdrawalRules, WithdrawalState, WithdrawalStore,
};
use tokio::time::sleep;

const CHAIN_ID: u64 = 31_337;
const AMOUNT: &str = "500";
const ID: WithdrawalId = WithdrawalId::from_bytes([1; WithdrawalId::BYTES]);

/// What the adapter works with, and how its withdrawals are checked.
struct Setup {
    evm: Evm,
    store: Store,
    rules: PoolRules,
}

impl Setup {
    fn new(
        chain: &Anvil,
        pool: &Pool,
        admin: &Account,
        store: Store,
    ) -> Result<Self, Box<dyn Error>> {
        let key: GasAdminKey = admin.secret_key.parse()?;
        let account = AccountScopeId::new(CHAIN_ID, key.address());
        let rules = PoolRules::new([(parse_address(pool.address())?, account)]);
        let options = EvmOptions {
            signers: vec![Arc::new(key)],
            rules: rules.clone(),
            confirmations: 1,
            // Nothing is signed while gas costs this much gwei.
            ..EvmOptions::new(CHAIN_ID, "200".parse()?)
        };
        let nodes = Arc::new(NodePool::new([chain.url()]));
        Ok(Self { evm: Evm::new(options, Arc::new(store.clone()), nodes)?, store, rules })
    }

    /// Schedules a withdrawal, whose batch is then the next one of the gas admin.
    fn schedule(&self, pool: &Pool, beneficiary: &str) -> Result<(), Box<dyn Error>> {
        let (pool, service_id) = self.rules.pool(pool.address())?;
        let withdrawal = Withdrawal {
            id: ID,
            service_id,
            kind: WithdrawalKind::Propose,
            reward_id: None,
            pool,
            beneficiary: self.rules.beneficiary(beneficiary)?,
            amount: self.rules.amount(AMOUNT)?,
            idempotency_key: None,
            call: None,
            trace: None,
        };
        for outcome in self.store.schedule(&[withdrawal])? {
            println!("scheduled: {:?}", outcome?);
        }
        Ok(())
    }

    fn record(&self, taken: &TakenBatch, event: Event) -> Result<(), Box<dyn Error>> {
        let change = Change::new(taken.service_id.clone(), taken.batch_id, event);
        self.store.record(&[change])?;
        Ok(())
    }

    /// Has the adapter sign the transaction, store it, and send it.
    async fn send(&self, node: &str, taken: &TakenBatch) -> Result<(), Box<dyn Error>> {
        let id = taken.batch_id.to_string();
        let submission = Submission::new(id, taken.service_id.clone(), Vec::new());
        let submission = submission.with_attempt_id(taken.attempt_id());
        let answer = self.evm.send(node, &submission).await;
        println!("sent: {} {}", answer.outcome, answer.message.unwrap_or_default());
        assert_eq!(answer.outcome, Outcome::Accepted);
        self.record(taken, Event::Outcome { attempt: taken.attempt, outcome: answer.outcome })
    }

    /// Adds blocks and asks for the status until the withdrawal is committed.
    async fn follow(&self, chain: &Anvil, taken: &TakenBatch) -> Result<(), Box<dyn Error>> {
        let ids = [taken.batch_id.to_string()];
        loop {
            chain.mine(1)?;
            for report in self.evm.statuses(taken.service_id.as_str(), &ids).await? {
                println!("{:?} in block {}", report.status, chain.block_number()?);
                self.record(taken, Event::status(report.status))?;
                if report.status == LedgerStatus::Committed {
                    return Ok(());
                }
            }
            sleep(Duration::from_millis(50)).await;
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let chain = Anvil::start(&AnvilOptions { mining: Mining::Manual, ..AnvilOptions::default() })?;
    let [admin, beneficiary, ..] = chain.accounts() else { return Err("no accounts".into()) };
    let pool = Pool::deploy(&chain, admin)?;
    let directory = tempfile::tempdir()?;
    let url = format!("sqlite://{}", directory.path().join("withdrawals.db").display());
    let store = Store::open(&url.parse()?, StoreOptions::default())?;
    let setup = Setup::new(&chain, &pool, admin, store.clone())?;
    setup.schedule(&pool, &beneficiary.address)?;

    let claims = ClaimStore::register(store.clone(), ClaimOptions::default())?;
    claims.take(10)?;
    let taken = claims.take_next(&claims.ready_services(None, 10)?)?;
    let [taken] = &taken[..] else { return Err("one withdrawal is ready".into()) };
    setup.send(chain.url(), taken).await?;
    setup.follow(&chain, taken).await?;

    let polls = pool.polls(&chain)?;
    let [poll] = &polls[..] else { return Err("the pool has accepted one withdrawal".into()) };
    println!("the pool pays {} to {}", poll.amount, poll.beneficiary);
    assert_eq!((poll.amount.as_str(), &poll.beneficiary), (AMOUNT, &beneficiary.address));
    let details = store.withdrawal(&ID)?.ok_or("the withdrawal is stored")?;
    assert_eq!(WithdrawalState::of(&details), WithdrawalState::Withdrawn);
    Ok(())
}
