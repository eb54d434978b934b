//! Transactions that read and write a few accounts of a simulated Sawtooth, so that some conflict.

use grid_batch_ledger_sim::StateOperation;
use grid_batch_protocol::TransactionBuilder;

/// The beginning of the addresses of all accounts.
const NAMESPACE: &str = "d3";
/// The number of accounts. With more accounts, fewer batches conflict.
const ACCOUNTS: usize = 100;
/// One of this many transactions reads a second account.
const READS_ANOTHER: usize = 5;
/// One of this many transactions declares that it may read and write all accounts.
const DECLARES_ALL: usize = 40;

/// The transaction with this number. Its result depends on the order of the transactions that conflict.
pub(crate) fn transaction(number: usize) -> TransactionBuilder {
    // Multiplying by a prime spreads the numbers over the accounts.
    let address = account(number * 37);
    let append = StateOperation::Append { address: address.clone(), number: number as u64 };
    if number % DECLARES_ALL == DECLARES_ALL - 1 {
        return StateOperation::transaction(&[append]).inputs([NAMESPACE]).outputs([NAMESPACE]);
    }
    if number % READS_ANOTHER == READS_ANOTHER - 1 {
        let source = account(number * 41 + 1);
        let read = StateOperation::AppendFrom { source: source.clone(), address: address.clone() };
        let transaction = StateOperation::transaction(&[append, read]);
        return transaction.inputs([address.clone(), source]).outputs([address]);
    }
    StateOperation::transaction(&[append]).inputs([address.clone()]).outputs([address])
}

fn account(number: usize) -> String {
    format!("{NAMESPACE}{:068x}", number % ACCOUNTS)
}
