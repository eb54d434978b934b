use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, PoisonError},
};

use alloy_primitives::Address;

/// The accounts that could not pay for the gas when it was last needed. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct AccountsWithoutFunds(Arc<Mutex<BTreeSet<Address>>>);

impl AccountsWithoutFunds {
    /// How many there are.
    pub fn count(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    pub(crate) fn note(&self, account: Address, can_pay: bool) {
        let mut accounts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if can_pay {
            accounts.remove(&account);
        } else {
            accounts.insert(account);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn account_counts_until_it_can_pay() {
        let accounts = AccountsWithoutFunds::default();
        accounts.note(Address::ZERO, false);
        accounts.note(Address::ZERO, false);
        assert_eq!(accounts.clone().count(), 1);
        accounts.note(Address::ZERO, true);
        assert_eq!(accounts.count(), 0);
    }
}
