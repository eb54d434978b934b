use alloy_primitives::{Address, utils::format_ether};
use log::{info, warn};

use super::account_gas::AccountGas;
use crate::memory::Memory;

/// Logs a warning about each gas admin whose balance is low, once until it is sufficient again.
#[derive(Debug, Default)]
pub(super) struct LowBalanceLog(Memory<Address, bool>);

impl LowBalanceLog {
    pub(super) fn record(&self, account: &AccountGas) {
        let (name, address) = (account.name.as_str(), account.address);
        let Some(balance) = account.balance.value.map(format_ether) else { return };
        match self.change(account) {
            Some(true) => warn!(
                gas_admin = name, account:% = address, balance = balance.as_str(),
                withdrawals_left = account.withdrawals_left;
                "the balance of a gas admin is low; send coins of the chain to it"
            ),
            Some(false) => info!(
                gas_admin = name, account:% = address, balance = balance.as_str();
                "the balance of a gas admin is sufficient again"
            ),
            None => {}
        }
    }

    /// Whether the balance is low now; `None` if that has not changed.
    fn change(&self, account: &AccountGas) -> Option<bool> {
        self.0.changes(&account.address, account.is_low).then_some(account.is_low)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        gas::{GasLimit, Seen},
        values::GasPrice,
    };

    fn account(is_low: bool) -> AccountGas {
        AccountGas {
            name: "treasury".to_owned(),
            address: Address::ZERO,
            balance: Seen::default(),
            price: Seen::default(),
            cap: GasPrice::from_wei(1),
            gas_limit: GasLimit::of(None),
            can_pay: true,
            withdrawals_left: None,
            is_low,
            pools: Vec::new(),
        }
    }

    #[test]
    fn low_balance_is_logged_once_until_it_ends() {
        let log = LowBalanceLog::default();
        let changes = [false, true, true, false, false, true].map(|low| log.change(&account(low)));
        assert_eq!(changes, [None, Some(true), None, Some(false), None, Some(true)]);
    }
}
