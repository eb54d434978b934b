//! EVM chains, with a node of anvil behind a proxy.

use std::{collections::HashMap, path::Path, process::Command, time::Duration};

use grid_batch_client::{Client, ClientError};
use grid_batch_core::ItemId;
use grid_batch_core::ledger::LedgerFacts;
use grid_batch_ledger_tests::{BatchKind, Fault, Harness, NotPossible, TestBatch, ledger_tests};
use grid_batch_test_chain::{
    AnvilOptions, Chain, Fault as ChainFault, FaultProxy, Poll, Pool, Stop,
};
use grid_batch_test_postgres::TestDatabase;
use serde_json::{Value, json};

ledger_tests!(Evm::new(), not_run: [
    "refuses_other_bytes",
    "silent_events",
    "sent_by_another_client",
    "applied_for_another_client",
    "pipeline",
    "parallel",
    "deadline_passes_before_sending",
    "deadline_passes_before_applying",
    "committed_before_its_deadline",
]);

const SEND: &str = "eth_sendRawTransaction";
const RESEND_AFTER: Duration = Duration::from_millis(500);

/// Settings for a chain that mines each transaction at once. Preparing a withdrawal needs several requests.
const CONFIGURATION: &str = r#"
chain_id = 31337
maximum_gas_price = "200"
gate_interval = "200ms"
confirmations = 1
resend_after = "500ms"
[claims]
idle_expiry = "1s"
full_expiry = "9s"
[testing]
sending_limit = "2500ms"
total_limit = "3s"
drain_limit = "3s"
quiet_after = "300ms"
accept_absence_after = "5s"
"#;

/// A chain with a pool. A batch is a withdrawal from it, and its amount is the number of the batch.
struct Evm {
    chain: Chain,
    proxy: FaultProxy,
    pool: Pool,
    /// A pool that refuses the gas admin of the server.
    refusing: Pool,
    /// A node that shows the chain as it was.
    second: Option<FaultProxy>,
    /// Another chain, and whether it is configured.
    other: Option<(Chain, bool)>,
    held: Option<Stop>,
    withdrawals: usize,
    database: Option<TestDatabase>,
}

impl Evm {
    fn new() -> Self {
        let chain = Chain::start(&AnvilOptions::default()).unwrap();
        let pool = Pool::deploy(&chain, &chain.accounts()[0]).unwrap();
        let refusing = Pool::deploy(&chain, &chain.accounts()[1]).unwrap();
        let proxy = FaultProxy::start(chain.url()).unwrap();
        let (second, other, held, database) = (None, None, None, None);
        Self { chain, proxy, pool, refusing, second, other, held, withdrawals: 0, database }
    }

    /// The amounts that the pools have paid on a chain, in order, with the hashes of the transactions.
    fn paid(&self, chain: &Chain) -> Vec<(ItemId, String)> {
        let polls = [&self.pool, &self.refusing].map(|pool| pool.polls(chain).unwrap());
        let paid = |poll: Poll| (poll.amount.parse().unwrap(), poll.transaction_hash);
        polls.into_iter().flatten().map(paid).collect()
    }
}

impl Harness for Evm {
    fn facts(&self) -> LedgerFacts {
        grid_batch_evm::facts(RESEND_AFTER)
    }

    fn server(&self, configuration: &Path) -> Command {
        let mut command = crate::serve(configuration);
        command.env("KEY", &self.chain.accounts()[0].secret_key);
        command
    }

    fn configuration(&self) -> String {
        let mut urls = vec![self.proxy.url()];
        urls.extend(self.second.as_ref().map(FaultProxy::url));
        if let Some((other, true)) = &self.other {
            urls = vec![other.url()];
        }
        let (pool, refusing) = (self.pool.address(), self.refusing.address());
        format!(
            "[ledger]\nkind = \"evm\"\nurls = {urls:?}\nrequest_timeout = \"2s\"\n\
             [gas_admins.admin]\nkey = \"env:KEY\"\n[pools.\"{pool}\"]\ngas_admin = \"admin\"\n\
             [pools.\"{refusing}\"]\ngas_admin = \"admin\"\n[evm]\n{CONFIGURATION}"
        )
    }

    fn service(&self) -> Option<String> {
        None
    }

    fn batch(&mut self, kind: BatchKind) -> Result<TestBatch, NotPossible> {
        let pool = match kind {
            BatchKind::Valid => self.pool.address(),
            BatchKind::Invalid => self.refusing.address(),
            BatchKind::AppliedForAnother => {
                return Err(NotPossible::new("only the server signs the transactions"));
            }
            BatchKind::WithDeadline => return Err(NotPossible::new("withdrawals do not expire")),
        };
        self.withdrawals += 1;
        let amount = self.withdrawals.to_string();
        let beneficiary = format!("0x{:040x}", 0xbeef_0000 + self.withdrawals);
        let body = json!({"pool": pool, "beneficiary": beneficiary, "amount": amount});
        Ok(TestBatch { id: amount.parse().unwrap(), bytes: body.to_string().into() })
    }

    fn submit(&mut self, server: &Client, batch: &TestBatch) -> Result<String, ClientError> {
        let body: Value = serde_json::from_slice(&batch.bytes).unwrap();
        let scheduled = server.post("/withdrawals", &[], &body)?;
        Ok(scheduled["id"].as_str().unwrap().to_owned())
    }

    fn fault(&mut self, fault: Fault) -> Result<(), NotPossible> {
        let proxy = &self.proxy;
        match fault {
            Fault::Busy => proxy.set(SEND, ChainFault::status(429)),
            Fault::Refuses => proxy.set(SEND, ChainFault::status(403)),
            Fault::LosesRequest => proxy.set_next(SEND, 1, ChainFault::NotForwarded),
            Fault::LosesAnswer => proxy.set_next(SEND, 1, ChainFault::LostAnswer),
            Fault::HoldsRequest => self.held = Some(proxy.stop_before(SEND, 1)),
            Fault::HoldsAnswer => self.held = Some(proxy.stop_after(SEND, 1)),
            Fault::AppliesNothing => self.chain.stop_mining().unwrap(),
            Fault::SendsNoEvents => {
                return Err(NotPossible::new("the adapter makes the events from what it reads"));
            }
            Fault::SecondNodeLags => {
                let second = FaultProxy::start(self.chain.url()).unwrap();
                second.set(FaultProxy::ANY, ChainFault::Stale);
                self.second = Some(second);
            }
            Fault::OtherLedger => {
                let genesis_time = Some(1_700_000_000);
                let options = AnvilOptions { genesis_time, ..AnvilOptions::default() };
                let other = Chain::start(&options).unwrap();
                let pool = Pool::deploy(&other, &other.accounts()[0]).unwrap();
                assert_eq!(pool.address(), self.pool.address());
                self.other = Some((other, true));
            }
        }
        Ok(())
    }

    fn heal(&mut self) {
        self.proxy.clear();
        if let Some(held) = self.held.take() {
            held.cut();
        }
        self.chain.start_mining().unwrap();
        if let Some((_, is_configured)) = &mut self.other {
            *is_configured = false;
        }
    }

    fn applied(&self) -> Vec<ItemId> {
        let chains = [&self.chain].into_iter().chain(self.other.as_ref().map(|(other, _)| other));
        chains.flat_map(|chain| self.paid(chain)).map(|(id, _)| id).collect()
    }

    fn arrivals(&self) -> usize {
        self.proxy.calls(SEND)
    }

    fn release(&mut self) -> Result<(), NotPossible> {
        if let Some(held) = self.held.take() {
            held.release();
        }
        Ok(())
    }

    fn restart(&mut self) -> Result<(), NotPossible> {
        self.chain.restart().unwrap();
        Ok(())
    }

    /// Any client can send a transaction again that it has seen.
    fn deliver(&mut self, batch: &TestBatch) -> Result<(), NotPossible> {
        let paid: HashMap<_, _> = self.paid(&self.chain).into_iter().collect();
        let hash = paid.get(&batch.id);
        let hash =
            hash.ok_or_else(|| NotPossible::new("only the server signs the transactions"))?;
        let sent = self.proxy.sent();
        let sent = sent.iter().find(|transaction| transaction.hash == *hash).unwrap();
        // The node refuses it, because its nonce was used.
        self.chain.rpc(SEND, json!([sent.raw])).unwrap_err();
        Ok(())
    }

    fn postgres(&mut self) -> Result<String, NotPossible> {
        Ok(self.database.get_or_insert_with(TestDatabase::create).url().to_owned())
    }
}
