use grid_batch_core::ItemId;
use grid_batch_protocol::{Batch, BatchBuilder, SigningKey, Transaction, TransactionBuilder};

use super::StateOperation;
use crate::random::Random;

mod repeated;

/// The prefix of all addresses of these batches, except the ledger's setting.
const NAMESPACE: &str = "5a7e";
/// The number of addresses that many batches use.
const SHARED: u64 = 24;
/// The length of a prefix that covers a group of these.
const GROUP: usize = 8;
/// The number of latest transactions that others may depend on.
const RECENT: usize = 12;

/// Random batches of the family [`StateOperation::FAMILY`]: independent batches, batches that conflict at single
/// addresses or below prefixes, dependent and invalid batches, and batches that change the ledger's setting. The same
/// seed makes the same batches.
///
/// ```
/// use grid_batch_ledger_sim::RandomBatches;
///
/// assert_eq!(RandomBatches::new(7).take(20), RandomBatches::new(7).take(20));
/// assert_ne!(RandomBatches::new(7).take(20), RandomBatches::new(8).take(20));
/// ```
#[derive(Debug)]
pub struct RandomBatches {
    seed: u64,
    random: Random,
    key: SigningKey,
    made: u64,
    has_dependencies: bool,
    has_fixed_results: bool,
    /// The latest transactions.
    recent: Vec<ItemId>,
    /// Batches that are returned later although an earlier one depends on them.
    kept_back: Vec<Batch>,
}

/// The operations and declarations of one transaction.
struct Plan {
    operations: Vec<StateOperation>,
    inputs: Vec<String>,
    outputs: Vec<String>,
}

impl RandomBatches {
    /// The batches of a seed.
    pub fn new(seed: u64) -> Self {
        Self {
            seed,
            random: Random::from_seed(seed),
            key: SigningKey::from_seed(seed),
            made: 0,
            has_dependencies: true,
            has_fixed_results: false,
            recent: Vec::new(),
            kept_back: Vec::new(),
        }
    }

    /// The same without dependencies.
    #[must_use]
    pub fn without_dependencies(self) -> Self {
        Self { has_dependencies: false, ..self }
    }

    /// The same without batches whose result depends on the state. Each of the others is either valid or invalid,
    /// however often and whenever the ledger executes it.
    #[must_use]
    pub fn with_fixed_results(self) -> Self {
        Self { has_fixed_results: true, ..self }
    }

    /// The next `count` batches. Each depends only on those before it and on those within the `count`, so that
    /// none waits for ever.
    pub fn take(&mut self, count: usize) -> Vec<Batch> {
        let mut batches = Vec::with_capacity(count);
        while batches.len() < count {
            let missing = count - batches.len() - self.kept_back.len();
            if !self.kept_back.is_empty() && (missing == 0 || self.one_in(4)) {
                batches.push(self.kept_back.remove(0));
            } else if missing > 1 && self.has_dependencies && self.one_in(20) {
                batches.push(self.batch_before_its_dependency());
            } else {
                batches.push(self.batch());
            }
        }
        batches
    }

    /// A batch of one transaction that conflicts with no other one.
    pub fn independent(&mut self) -> Batch {
        let address = self.own_address();
        self.sign([append(address, self.made)], &[])
    }

    /// A batch of one transaction that conflicts with all others that this returns.
    pub fn conflicting(&mut self) -> Batch {
        self.sign([append(shared_address(0), self.made)], &[])
    }

    /// Keeps the batch back that the returned one depends on.
    fn batch_before_its_dependency(&mut self) -> Batch {
        let dependency = self.batch();
        let id = dependency.transactions.first().and_then(|it| it.header_signature.parse().ok());
        let plan = self.plan();
        self.kept_back.push(dependency);
        self.sign([plan], &Vec::from_iter(id))
    }

    fn batch(&mut self) -> Batch {
        let transactions = 1 + self.random.next() % 3 / 2;
        let plans: Vec<_> = (0..transactions).map(|_| self.plan()).collect();
        let may_depend = self.has_dependencies && !self.recent.is_empty();
        let depends = may_depend && self.one_in(6);
        let dependency = depends.then(|| self.random.next() as usize % self.recent.len());
        let dependencies = Vec::from_iter(dependency.map(|index| self.recent[index]));
        self.sign(plans, &dependencies)
    }

    fn plan(&mut self) -> Plan {
        let [shared, other] = [0; 2].map(|_| shared_address(self.random.next() % SHARED));
        let number = self.random.next() % 1_000;
        match self.random.next() % 100 {
            0..35 => append(self.own_address(), number),
            35..60 => append(shared, number),
            60..72 => {
                let (inputs, outputs) = (vec![shared.clone()], vec![other.clone()]);
                let inputs = [inputs, outputs.clone()].concat();
                let operation = StateOperation::AppendFrom { source: shared, address: other };
                Plan { operations: vec![operation], inputs, outputs }
            }
            72..80 => {
                let prefix = vec![shared[..GROUP].to_owned()];
                Plan { inputs: prefix.clone(), outputs: prefix, ..append(shared, number) }
            }
            80..84 => {
                let operation = StateOperation::Set { address: shared.clone(), number };
                Plan { operations: vec![operation], inputs: vec![other], outputs: vec![shared] }
            }
            84..90 if !self.has_fixed_results => {
                let mut plan = append(other, number);
                plan.inputs.push(shared.clone());
                plan.operations.push(StateOperation::RequireEven { address: shared });
                plan
            }
            84..93 => {
                let mut plan = append(shared, number);
                plan.operations.push(StateOperation::Fail);
                plan
            }
            93..95 => Plan { outputs: vec![other], ..append(shared, number) },
            95..97 => Plan { inputs: vec![], outputs: vec![], ..append(shared, number) },
            97..98 => Plan { inputs: vec![NAMESPACE.to_owned()], ..append(shared, number) },
            _ => append(StateOperation::SETTING.to_owned(), number),
        }
    }

    fn sign(&mut self, plans: impl IntoIterator<Item = Plan>, dependencies: &[ItemId]) -> Batch {
        self.made += 1;
        let mut builder = BatchBuilder::new();
        for (index, plan) in plans.into_iter().enumerate() {
            let transaction = self.sign_transaction(plan, dependencies, index);
            self.recent.extend(transaction.header_signature.parse::<ItemId>());
            builder = builder.transaction(transaction);
        }
        self.recent.drain(..self.recent.len().saturating_sub(RECENT));
        builder.sign(&self.key)
    }

    fn sign_transaction(&self, plan: Plan, dependencies: &[ItemId], index: usize) -> Transaction {
        TransactionBuilder::from(plan)
            .dependencies(dependencies.iter().copied())
            .nonce(format!("{}/{}/{index}", self.seed, self.made))
            .sign(&self.key, &self.key.public_key())
    }

    /// An address that no other batch uses.
    fn own_address(&mut self) -> String {
        self.made += 1;
        format!("{NAMESPACE}01{:064x}", self.made)
    }

    fn one_in(&mut self, times: u64) -> bool {
        self.random.next().is_multiple_of(times)
    }
}

impl From<Plan> for TransactionBuilder {
    fn from(plan: Plan) -> Self {
        StateOperation::transaction(&plan.operations).inputs(plan.inputs).outputs(plan.outputs)
    }
}

fn append(address: String, number: u64) -> Plan {
    let declared = vec![address.clone()];
    let operations = vec![StateOperation::Append { address, number }];
    Plan { operations, inputs: declared.clone(), outputs: declared }
}

/// The addresses of a group differ only behind the first [`GROUP`] digits.
fn shared_address(number: u64) -> String {
    format!("{NAMESPACE}00{:02x}{:02x}{:060x}", number / 6, number % 6, 0)
}
