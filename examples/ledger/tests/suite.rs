//! The suite for ledgers, over the program and the simulated ledger.

use std::{
    env,
    io::{Read, Write},
    net::TcpStream,
    path::Path,
    process::{self, Command},
    time::Duration,
};

use grid_batch_core::ItemId;
use grid_batch_core::ledger::LedgerFacts;
use grid_batch_ledger_tests::{BatchKind, Fault, Harness, NotPossible, TestBatch, ledger_tests};
use sequence_ledger_sim::{Fault as NodeFault, Simulator, Transaction, id_of};

// The ledger has no events, and neither a strategy for several batches of an account.
ledger_tests!(SequenceLedger::new(), not_run: ["silent_events", "pipeline", "parallel"]);

const ACCOUNT: &str = "alice";
/// Several times as long as a request takes.
const INTERVAL: Duration = Duration::from_millis(50);
/// The deadline of most transactions, which is never passed.
const FAR: u64 = 1_000_000;
/// How many blocks the second node lags behind.
const LAG: u64 = 10;

struct SequenceLedger {
    node: Simulator,
    /// A node of another ledger, and whether it is configured.
    other: Option<(Simulator, bool)>,
    /// The sequence number of the latest batch.
    sequence: u64,
    /// For several instances.
    schema: Option<Schema>,
}

impl SequenceLedger {
    fn new() -> Self {
        Self {
            node: Simulator::start("test", INTERVAL).unwrap(),
            other: None,
            sequence: 0,
            schema: None,
        }
    }

    fn height(&self) -> u64 {
        self.node.with_chain(|chain| chain.height())
    }

    /// A payment with the present sequence number. Two of another amount are different transactions.
    fn payment(&self, amount: u64, last_height: u64) -> TestBatch {
        let (account, to, sequence) = (ACCOUNT.to_owned(), "bob".to_owned(), self.sequence);
        let transaction = Transaction { account, sequence, last_height, to, amount };
        let bytes = serde_json::to_vec(&transaction).unwrap();
        TestBatch { id: id_of(&transaction, &bytes).parse().unwrap(), bytes }
    }

    /// Posts a transaction to the node. The status is that of the answer.
    fn post(&self, batch: &TestBatch) -> u16 {
        let address = self.node.urls()[0].trim_start_matches("http://");
        let mut stream = TcpStream::connect(address).unwrap();
        let length = batch.bytes.len();
        let head = format!(
            "POST /transactions HTTP/1.1\r\nhost: {address}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n"
        );
        stream.write_all(&[head.as_bytes(), &batch.bytes].concat()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer.split(' ').nth(1).unwrap().parse().unwrap()
    }

    fn wait_for_blocks(&self, count: u64) {
        let end = self.height() + count;
        while self.height() < end {
            std::thread::sleep(INTERVAL / 5);
        }
    }
}

impl Harness for SequenceLedger {
    fn facts(&self) -> LedgerFacts {
        sequence_batch::facts()
    }

    fn server(&self, configuration: &Path) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sequence-batch"));
        command.args(["serve", "--config"]).arg(configuration);
        command
    }

    fn configuration(&self) -> String {
        let urls = match &self.other {
            Some((other, true)) => other.urls(),
            _ => self.node.urls(),
        };
        format!("[ledger]\nkind = \"sequence\"\nurls = {urls:?}\n")
    }

    fn service(&self) -> Option<String> {
        Some(ACCOUNT.to_owned())
    }

    fn batch(&mut self, kind: BatchKind) -> Result<TestBatch, NotPossible> {
        self.sequence += 1;
        Ok(match kind {
            BatchKind::Valid => self.payment(1, FAR),
            BatchKind::Invalid => self.payment(5_000, FAR),
            // The other transaction with this sequence number fails, so that nothing else is applied.
            BatchKind::AppliedForAnother => {
                assert_eq!(self.post(&self.payment(5_000, FAR)), 202);
                self.wait_for_blocks(2);
                self.payment(1, FAR)
            }
            BatchKind::WithDeadline => self.payment(1, self.height() + 1_000),
        })
    }

    fn fault(&mut self, fault: Fault) -> Result<(), NotPossible> {
        match fault {
            Fault::Busy => self.node.set_fault(NodeFault::Busy),
            Fault::Refuses => self.node.set_fault(NodeFault::Refuses),
            Fault::LosesRequest => self.node.set_fault(NodeFault::LosesRequest),
            Fault::LosesAnswer => self.node.set_fault(NodeFault::LosesAnswer),
            Fault::HoldsRequest => self.node.set_fault(NodeFault::HoldsRequest),
            Fault::HoldsAnswer => self.node.set_fault(NodeFault::HoldsAnswer),
            Fault::AppliesNothing => self.node.with_chain(|chain| chain.set_stopped(true)),
            Fault::SendsNoEvents => return Err(NotPossible::new("the ledger has no events")),
            Fault::SecondNodeLags => self.node.add_node(LAG).unwrap(),
            Fault::OtherLedger => {
                self.other = Some((Simulator::start("other", INTERVAL).unwrap(), true));
            }
        }
        Ok(())
    }

    fn heal(&mut self) {
        self.node.heal();
        self.node.with_chain(|chain| chain.set_stopped(false));
        if let Some((_, is_configured)) = &mut self.other {
            *is_configured = false;
        }
    }

    fn applied(&self) -> Vec<ItemId> {
        let nodes = [&self.node].into_iter().chain(self.other.as_ref().map(|(other, _)| other));
        let applied = nodes.flat_map(|node| node.with_chain(|chain| chain.applied().to_vec()));
        applied.map(|id| id.parse().unwrap()).collect()
    }

    fn arrivals(&self) -> usize {
        self.node.arrivals()
    }

    fn release(&mut self) -> Result<(), NotPossible> {
        self.node.release().unwrap();
        Ok(())
    }

    fn restart(&mut self) -> Result<(), NotPossible> {
        self.node.restart();
        Ok(())
    }

    fn deliver(&mut self, batch: &TestBatch) -> Result<(), NotPossible> {
        self.post(batch);
        self.wait_for_blocks(2);
        Ok(())
    }

    fn pass_deadlines(&mut self) -> Result<(), NotPossible> {
        let height = self.height();
        self.node.with_chain(|chain| chain.skip_to(height + 1_001));
        // What has expired has not used its sequence number.
        self.sequence = self.node.with_chain(|chain| chain.next_sequence(ACCOUNT)) - 1;
        Ok(())
    }

    fn postgres(&mut self) -> Result<String, NotPossible> {
        Ok(self.schema.get_or_insert_with(Schema::create).url())
    }
}

/// An empty schema of PostgreSQL, removed when the value is dropped.
struct Schema {
    server: String,
    name: String,
}

impl Schema {
    fn create() -> Self {
        let server = env::var("GRID_BATCH_TEST_DATABASE_URL")
            .expect("GRID_BATCH_TEST_DATABASE_URL has the URL of a PostgreSQL database");
        let schema = Self { server, name: format!("sequence_{}", process::id()) };
        assert!(schema.psql(&format!("create schema {}", schema.name)), "psql made no schema");
        schema
    }

    /// The URL of the database, with the schema as its search path.
    fn url(&self) -> String {
        let separator = if self.server.contains('?') { '&' } else { '?' };
        format!("{}{separator}options=-csearch_path%3D{}", self.server, self.name)
    }

    fn psql(&self, statement: &str) -> bool {
        let mut psql = Command::new("psql");
        psql.args(["-X", "-q", "-d", &self.server, "-c", statement]);
        psql.status().is_ok_and(|status| status.success())
    }
}

impl Drop for Schema {
    fn drop(&mut self) {
        self.psql(&format!("set lock_timeout = '5s'; drop schema {} cascade", self.name));
    }
}
