//! The state of the ledger: what was applied at which height, and what waits for a block.

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// A payment of an account.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transaction {
    /// Who pays.
    pub account: String,
    /// The number of the transaction in its account, counted from 1.
    pub sequence: u64,
    /// The last block that can contain it.
    pub last_height: u64,
    /// Who is paid.
    pub to: String,
    /// How much. An account begins with 1000.
    pub amount: u64,
}

/// What a node has done with a transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Posted {
    /// It waits for a block.
    Waits,
    /// The bytes are not a transaction.
    Malformed(String),
    /// It is in a block, or can never be in one.
    TooLate(String),
    /// A transaction before it is missing.
    TooEarly(String),
}

/// What a node tells of a transaction.
#[derive(Debug, Serialize)]
pub(crate) struct Record {
    height: u64,
    next_sequence: u64,
    state: &'static str,
    error: Option<String>,
}

/// What happened to a transaction in a block.
#[derive(Debug)]
struct Executed {
    height: u64,
    error: Option<String>,
}

#[derive(Debug)]
struct Account {
    balance: u64,
    /// The heights at which its sequence numbers were used.
    used: Vec<u64>,
}

impl Default for Account {
    fn default() -> Self {
        Self { balance: 1000, used: Vec::new() }
    }
}

impl Account {
    fn next_sequence(&self, height: u64) -> u64 {
        self.used.partition_point(|used| *used <= height) as u64 + 1
    }
}

/// The blocks, and what waits for the next one.
#[derive(Debug, Default)]
pub struct Chain {
    network: String,
    height: u64,
    accounts: HashMap<String, Account>,
    executed: HashMap<String, Executed>,
    /// By account and sequence number.
    waiting: BTreeMap<(String, u64), (String, Transaction)>,
    applied: Vec<String>,
    /// Whether blocks are empty.
    is_stopped: bool,
}

impl Chain {
    pub(crate) fn new(network: &str) -> Self {
        Self { network: network.to_owned(), ..Self::default() }
    }

    /// The name of the ledger.
    pub fn network(&self) -> &str {
        &self.network
    }

    /// The number of the latest block.
    pub fn height(&self) -> u64 {
        self.height
    }

    /// The ids of what was applied, in order.
    pub fn applied(&self) -> &[String] {
        &self.applied
    }

    /// The sequence number that the account has not used yet.
    pub fn next_sequence(&self, account: &str) -> u64 {
        self.next_sequence_at(account, self.height)
    }

    /// Sets whether blocks stay empty from now on.
    pub fn set_stopped(&mut self, is_stopped: bool) {
        self.is_stopped = is_stopped;
    }

    /// Handles a transaction that arrives at a node that is so many blocks behind.
    pub fn post(&mut self, bytes: &[u8], lag: u64) -> Posted {
        let transaction: Transaction = match serde_json::from_slice(bytes) {
            Ok(transaction) => transaction,
            Err(error) => return Posted::Malformed(error.to_string()),
        };
        let Transaction { account, sequence, last_height, .. } = &transaction;
        let (sequence, height) = (*sequence, self.height.saturating_sub(lag));
        let next = self.next_sequence_at(account, height);
        if sequence < next {
            let text = format!("the sequence number {sequence} was used; {next} is the next one");
            return Posted::TooLate(text);
        }
        if *last_height <= height {
            return Posted::TooLate(format!("the height {last_height} has passed"));
        }
        let missing = |number| !self.waiting.contains_key(&(account.clone(), number));
        if let Some(missing) = (next..sequence).find(|number| missing(*number)) {
            return Posted::TooEarly(format!("the sequence number {missing} was not used yet"));
        }
        let id = id_of(&transaction, bytes);
        match self.waiting.get(&(account.clone(), sequence)) {
            Some((other, _)) if *other != id => {
                Posted::TooLate(format!("{other} has the sequence number {sequence}"))
            }
            _ => {
                self.waiting.insert((account.clone(), sequence), (id, transaction));
                Posted::Waits
            }
        }
    }

    /// Adds a block with what waits.
    pub fn add_block(&mut self) {
        self.height += 1;
        if !self.is_stopped {
            for ((account, sequence), (id, transaction)) in std::mem::take(&mut self.waiting) {
                let is_next = sequence == self.next_sequence(&account);
                if is_next && transaction.last_height >= self.height {
                    self.execute(id, transaction);
                } else {
                    self.waiting.insert((account, sequence), (id, transaction));
                }
            }
        }
        self.forget_expired();
    }

    /// Adds empty blocks up to this height.
    pub fn skip_to(&mut self, height: u64) {
        self.height = self.height.max(height);
        self.forget_expired();
    }

    /// Forgets what waits for a block.
    pub fn forget_waiting(&mut self) {
        self.waiting.clear();
    }

    fn forget_expired(&mut self) {
        let height = self.height;
        self.waiting.retain(|_, (_, transaction)| transaction.last_height > height);
    }

    fn execute(&mut self, id: String, transaction: Transaction) {
        let Transaction { account, to, amount, .. } = transaction;
        let height = self.height;
        let payer = self.accounts.entry(account).or_default();
        payer.used.push(height);
        let error = match payer.balance.checked_sub(amount) {
            Some(rest) => {
                payer.balance = rest;
                self.accounts.entry(to).or_default().balance += amount;
                self.applied.push(id.clone());
                None
            }
            None => Some(format!("the account has {}, and {amount} is to be paid", payer.balance)),
        };
        self.executed.insert(id, Executed { height, error });
    }

    fn next_sequence_at(&self, account: &str, height: u64) -> u64 {
        self.accounts.get(account).map_or(1, |account| account.next_sequence(height))
    }

    /// What a node that is so many blocks behind tells of a transaction.
    pub(crate) fn record(&self, account: &str, id: &str, lag: u64) -> Record {
        let height = self.height.saturating_sub(lag);
        let next_sequence = self.next_sequence_at(account, height);
        let executed = self.executed.get(id).filter(|executed| executed.height <= height);
        let is_waiting = || self.waiting.values().any(|(waiting, _)| waiting == id);
        let (state, error) = match executed {
            Some(Executed { error: None, .. }) => ("applied", None),
            Some(Executed { error, .. }) => ("failed", error.clone()),
            None if is_waiting() => ("waiting", None),
            None => ("unknown", None),
        };
        Record { height, next_sequence, state, error }
    }
}

/// The id of a transaction with these bytes: `ACCOUNT-SEQUENCE-HASH`.
pub fn id_of(transaction: &Transaction, bytes: &[u8]) -> String {
    let hash: String =
        Sha256::digest(bytes).iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    format!("{}-{}-{hash}", transaction.account, transaction.sequence)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn payment(sequence: u64, last_height: u64, amount: u64) -> (String, Vec<u8>) {
        let (account, to) = ("alice".to_owned(), "bob".to_owned());
        let transaction = Transaction { account, sequence, last_height, to, amount };
        let bytes = serde_json::to_vec(&transaction).unwrap();
        (id_of(&transaction, &bytes), bytes)
    }

    fn state(chain: &Chain, id: &str) -> &'static str {
        chain.record("alice", id, 0).state
    }

    #[test]
    fn transactions_are_applied_once_in_the_order_of_their_numbers() {
        let mut chain = Chain::new("test");
        let (first, one) = payment(1, 9, 5);
        let (second, two) = payment(2, 9, 5);
        assert!(matches!(chain.post(&two, 0), Posted::TooEarly(_)));
        for bytes in [&one, &two, &one] {
            assert_eq!(chain.post(bytes, 0), Posted::Waits);
        }
        assert_eq!(state(&chain, &first), "waiting");
        chain.add_block();
        assert_eq!(chain.applied(), [first.clone(), second]);
        assert!(matches!(chain.post(&one, 0), Posted::TooLate(_)));
        assert_eq!((state(&chain, &first), chain.next_sequence("alice")), ("applied", 3));
        assert_eq!(chain.record("alice", &first, 1).state, "unknown");
    }

    #[test]
    fn failed_transaction_uses_its_number() {
        let mut chain = Chain::new("test");
        let (failed, bytes) = payment(1, 9, 2000);
        chain.post(&bytes, 0);
        chain.add_block();
        assert_eq!((state(&chain, &failed), chain.next_sequence("alice")), ("failed", 2));
        let (other, bytes) = payment(1, 9, 1);
        assert!(matches!(chain.post(&bytes, 0), Posted::TooLate(_)));
        assert_eq!(state(&chain, &other), "unknown");
    }

    #[test]
    fn transaction_expires_at_its_height() {
        let mut chain = Chain::new("test");
        let (id, bytes) = payment(1, 2, 1);
        chain.set_stopped(true);
        chain.post(&bytes, 0);
        chain.add_block();
        assert_eq!(state(&chain, &id), "waiting");
        chain.add_block();
        assert_eq!(state(&chain, &id), "unknown");
        assert!(matches!(chain.post(&bytes, 0), Posted::TooLate(_)));
    }
}
