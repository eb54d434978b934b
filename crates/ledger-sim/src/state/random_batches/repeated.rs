use grid_batch_core::ItemId;
use grid_batch_protocol::{Batch, BatchBuilder, Transaction};

use super::{Plan, RandomBatches, append};

/// Batches with transactions of earlier batches. A ledger applies a transaction once.
impl RandomBatches {
    /// Another batch with one of the transactions of this batch, with a new transaction or alone.
    pub fn repeating(&mut self, batch: &Batch) -> Batch {
        let count = batch.transactions.len().max(1);
        let repeated = batch.transactions.get(self.random.next() as usize % count).cloned();
        // A batch with only the transaction of a one-transaction batch would be the same batch.
        let is_alone = count > 1 && self.one_in(2);
        let plan = (!is_alone).then(|| self.plan());
        let new = plan.map(|plan| self.transaction(plan));
        self.sign_transactions(repeated.into_iter().chain(new))
    }

    /// A batch of one transaction that is valid regardless of earlier batches, and another batch with that transaction,
    /// which conflicts with the same batches.
    pub fn twins(&mut self) -> [Batch; 2] {
        let batch = if self.one_in(2) { self.independent() } else { self.conflicting() };
        let plan = append(self.own_address(), self.made);
        let new = self.transaction(plan);
        let other = self.sign_transactions([new].into_iter().chain(batch.transactions.clone()));
        [batch, other]
    }

    /// A batch that depends on a transaction of this one.
    pub fn depending(&mut self, batch: &Batch) -> Batch {
        let id = batch.transactions.first().and_then(|it| it.header_signature.parse().ok());
        let plan = self.plan();
        self.sign([plan], &Vec::from_iter::<Option<ItemId>>(id))
    }

    /// A new transaction without dependencies.
    fn transaction(&mut self, plan: Plan) -> Transaction {
        self.made += 1;
        self.sign_transaction(plan, &[], 0)
    }

    fn sign_transactions(&self, transactions: impl IntoIterator<Item = Transaction>) -> Batch {
        BatchBuilder::new().transactions(transactions).sign(&self.key)
    }
}
