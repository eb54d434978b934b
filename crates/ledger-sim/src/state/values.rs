use std::collections::BTreeMap;

use grid_batch_protocol::{Batch, Message, Transaction, TransactionHeader, VerifiedBatch};

use super::{BatchAccess, StateOperation, intkey::Intkey};

/// The numbers at the addresses of a ledger. An address that was never written has 0.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StateValues(BTreeMap<String, u64>);

impl StateValues {
    /// The numbers that were written, by address.
    pub fn written(&self) -> &BTreeMap<String, u64> {
        &self.0
    }

    /// Applies a batch, or changes nothing and returns why it is invalid. Transactions of other families change
    /// nothing.
    pub(crate) fn apply(&mut self, batch: &Batch) -> Result<(), String> {
        let mut changes = self.changes_by(batch)?;
        self.0.append(&mut changes);
        Ok(())
    }

    /// The numbers that a batch writes, or why it is invalid.
    pub(crate) fn changes_by(&self, batch: &Batch) -> Result<BTreeMap<String, u64>, String> {
        let mut changes = BTreeMap::new();
        for transaction in &batch.transactions {
            let header = TransactionHeader::decode(&*transaction.header)
                .map_err(|error| format!("a header cannot be decoded: {error}"))?;
            let access = BatchAccess::of_headers([&header].into_iter());
            let mut context = Context { values: self, changes: &mut changes, access };
            match header.family_name.as_str() {
                StateOperation::FAMILY => context.execute(transaction)?,
                Intkey::FAMILY => context.execute_intkey(transaction)?,
                _ => {}
            }
        }
        Ok(changes)
    }

    fn get(&self, address: &str) -> u64 {
        self.0.get(address).copied().unwrap_or(0)
    }
}

/// Whether a transaction of the batch belongs to a family whose transactions are executed.
pub(crate) fn is_executed(batch: &VerifiedBatch) -> bool {
    let has = |family| batch.transactions().iter().any(|it| it.header().family_name == family);
    let is_intkey =
        |batch: Batch| batch.transactions.iter().any(|it| Intkey::read(&it.payload).is_some());
    has(StateOperation::FAMILY)
        || has(Intkey::FAMILY) && Batch::decode(batch.bytes()).is_ok_and(is_intkey)
}

/// The state that one transaction sees: that of the ledger with the changes of its batch, limited to the addresses that
/// it declares.
struct Context<'a> {
    values: &'a StateValues,
    changes: &'a mut BTreeMap<String, u64>,
    access: BatchAccess,
}

impl Context<'_> {
    /// Any odd number mixes the bits and keeps different numbers different.
    const MULTIPLIER: u64 = 6_364_136_223_846_793_005;

    fn execute(&mut self, transaction: &Transaction) -> Result<(), String> {
        let payload = std::str::from_utf8(&transaction.payload).map_err(|e| e.to_string())?;
        payload.lines().try_for_each(|line| self.execute_operation(&line.parse()?))
    }

    /// A payload that is not one of `intkey` changes nothing.
    fn execute_intkey(&mut self, transaction: &Transaction) -> Result<(), String> {
        let Some(intkey) = Intkey::read(&transaction.payload) else { return Ok(()) };
        let address = intkey.address();
        if !self.access.may_read(&address) || !self.access.may_write(&address) {
            return Err(format!("the address {address} is not in the inputs and outputs"));
        }
        let present = self.changes.get(&address).or_else(|| self.values.0.get(&address));
        let number = intkey.apply(present.copied())?;
        self.changes.insert(address, number);
        Ok(())
    }

    fn execute_operation(&mut self, operation: &StateOperation) -> Result<(), String> {
        match operation {
            StateOperation::Set { address, number } => self.write(address, *number),
            StateOperation::Append { address, number } => self.append(address, *number),
            StateOperation::AppendFrom { source, address } => {
                let number = self.read(source)?;
                self.append(address, number)
            }
            StateOperation::RequireEven { address } if self.read(address)? % 2 == 1 => {
                Err(format!("the number at {address} is odd"))
            }
            StateOperation::RequireEven { .. } => Ok(()),
            StateOperation::Fail => Err("the transaction fails".to_owned()),
        }
    }

    fn append(&mut self, address: &str, number: u64) -> Result<(), String> {
        let old = self.read(address)?;
        self.write(address, old.wrapping_mul(Self::MULTIPLIER).wrapping_add(number))
    }

    fn read(&self, address: &str) -> Result<u64, String> {
        if self.access.may_read(address) {
            Ok(self.current(address))
        } else {
            Err(format!("the address {address} is not in the inputs"))
        }
    }

    /// Writes the number, changed by the ledger's setting.
    fn write(&mut self, address: &str, number: u64) -> Result<(), String> {
        if !self.access.may_write(address) {
            return Err(format!("the address {address} is not in the outputs"));
        }
        let number = number.wrapping_add(self.current(StateOperation::SETTING));
        self.changes.insert(address.to_owned(), number);
        Ok(())
    }

    fn current(&self, address: &str) -> u64 {
        self.changes.get(address).copied().unwrap_or_else(|| self.values.get(address))
    }
}
