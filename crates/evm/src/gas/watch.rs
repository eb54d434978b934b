use std::{sync::Arc, time::Duration};

use alloy_primitives::{Address, U256};
use grid_batch_core::{BatchResult, ScopeId, ServiceId};
use grid_batch_support::ErrorChain;
use log::debug;

use super::{
    account_gas::{AccountGas, GasLimit, PoolGas, Seen},
    low_balance_log::LowBalanceLog,
};
use crate::{
    account::Account,
    context::EvmContext,
    node::{BlockTag, NodeClient, NodeError},
    price::Urgency,
    scope::AccountScopeId,
    values::GasPrice,
};

/// A gas admin to watch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatchedAccount {
    /// The name that the operator gave it.
    pub name: String,
    /// The account.
    pub account: AccountScopeId,
    /// Its pools.
    pub pools: Vec<Address>,
}

/// Watches the gas price and the balances of gas admins and pools.
///
/// Only [`look`](Self::look) asks nodes; the other methods return the last observations from memory.
#[derive(Debug)]
pub struct GasWatch {
    context: Arc<EvmContext>,
    accounts: Vec<WatchedAccount>,
    low_balance: u64,
    pub(super) interval: Duration,
    log: LowBalanceLog,
}

impl GasWatch {
    /// The balance of an account is low if it pays for fewer withdrawals than `low_balance`. The caller looks once per
    /// `interval`.
    pub(crate) fn new(
        context: Arc<EvmContext>,
        accounts: Vec<WatchedAccount>,
        low_balance: u64,
        interval: Duration,
    ) -> Self {
        Self { context, accounts, low_balance, interval, log: LowBalanceLog::default() }
    }

    /// Reads the gas price and all balances, and logs which balances have become low. Returns whether one node reported
    /// all balances. Dropping the future ends the look.
    ///
    /// For accounts without an open withdrawal, it also settles nonces that other programs have used, while nodes still
    /// show the transactions.
    pub async fn look(&self) -> bool {
        let mut error = "no node has confirmed which chain it is on".to_owned();
        let mut has_succeeded = false;
        let mut nodes = self.nodes();
        for _ in 0..nodes.len() {
            match self.look_at(&nodes[0]).await {
                Ok(()) => {
                    has_succeeded = true;
                    self.settle(&nodes).await;
                    break;
                }
                Err(failure) => error = ErrorChain(&failure).to_string(),
            }
            nodes.rotate_left(1);
        }
        if !has_succeeded {
            self.note_failure(&error);
        }
        self.accounts().iter().for_each(|account| self.log.record(account));
        has_succeeded
    }

    /// The last observations.
    pub fn accounts(&self) -> Vec<AccountGas> {
        self.accounts.iter().map(|watched| self.account(watched)).collect()
    }

    /// How many withdrawals the chain has paid since the start although an operator had decided that they are invalid.
    pub fn paid_after_failure(&self) -> u64 {
        self.context.gas.paid_after_failure()
    }

    /// The services of the gas admins, in the order of [`accounts`](Self::accounts).
    pub(super) fn service_ids(&self) -> impl Iterator<Item = &ServiceId> {
        self.accounts.iter().map(|watched| watched.account.service_id())
    }

    fn nodes(&self) -> Vec<NodeClient> {
        let Some(first) = self.accounts.first() else { return Vec::new() };
        let urls = self.context.nodes.status_urls(first.account.service_id().as_str(), "");
        urls.into_iter().map(|url| self.context.node(url)).collect()
    }

    /// Stops at the first balance that cannot be read, because the next node may answer.
    async fn look_at(&self, node: &NodeClient) -> Result<(), NodeError> {
        let context = &self.context;
        // The balances are useful even without a price.
        let _ = context.read_price(node, Urgency::Usual).await;
        for address in self.addresses() {
            let balance = node.balance(address).await?;
            context.gas.note_balance(address, balance, context.monotonic());
        }
        Ok(())
    }

    /// Finds payments of withdrawals about which an operator has decided, and settles nonces of idle accounts. After a
    /// failure, the next look tries again.
    async fn settle(&self, nodes: &[NodeClient]) {
        let Some(node) = nodes.first() else { return };
        for WatchedAccount { account: scope, .. } in &self.accounts {
            let account = Account { context: &self.context, nodes, scope };
            if let Err(error) = account.close_own_uses(node).await {
                debug!(service:% = scope, error:%; "nonces of ended transactions were not settled");
            }
            if let Err(error) = settle_if_idle(account, node).await {
                debug!(service:% = scope, error:%; "the nonces of an idle account were not looked at");
            }
        }
    }

    fn note_failure(&self, error: &str) {
        self.context.note_price_error(error.to_owned());
        for address in self.addresses() {
            self.context.gas.note_balance_error(address, error);
        }
    }

    fn addresses(&self) -> impl Iterator<Item = Address> {
        self.accounts.iter().flat_map(|watched| {
            std::iter::once(watched.account.address()).chain(watched.pools.iter().copied())
        })
    }

    fn account(&self, watched: &WatchedAccount) -> AccountGas {
        let (context, address) = (&self.context, watched.account.address());
        let now = context.monotonic();
        let pools: Vec<PoolGas> = watched.pools.iter().map(|pool| self.pool(*pool)).collect();
        let cap = pools.iter().map(|pool| pool.cap).max().unwrap_or(context.options.cap);
        let gas_limit = GasLimit::of(context.gas.gas_limit(address));
        let balance: Seen<U256> = context.gas.balance(address, now);
        let price = context.gas.price(now);
        let left = |balance| gas_limit.left(balance, cap, price.value);
        let withdrawals_left = balance.value.and_then(left);
        AccountGas {
            name: watched.name.clone(),
            address,
            price,
            cap,
            gas_limit,
            can_pay: context.gas.can_pay(address),
            is_low: withdrawals_left.is_some_and(|left| left < self.low_balance),
            withdrawals_left,
            balance,
            pools,
        }
    }

    fn pool(&self, address: Address) -> PoolGas {
        let now = self.context.monotonic();
        let cap: GasPrice = self.context.cap_of(address);
        PoolGas {
            address,
            cap,
            above_cap_for: self.context.gas.above_for(cap, now),
            balance: self.context.gas.balance(address, now),
        }
    }
}

async fn settle_if_idle(account: Account<'_>, node: &NodeClient) -> BatchResult<()> {
    let (store, service_id) = (&account.context.store, account.service_id());
    let count = node.transaction_count(account.address(), BlockTag::Latest).await?;
    let Some(next) = store.next_nonce(service_id).await? else { return Ok(()) };
    if count > next && store.first_open(service_id).await?.is_none() {
        account.settle_nonces().await?;
    }
    Ok(())
}
