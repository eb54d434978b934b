use std::collections::BTreeSet;

use super::found_use::{FoundUse, UseKind};
use crate::scope::AccountScopeId;

/// The transactions of an account that are in blocks, compared with what is stored.
#[derive(Debug)]
pub(super) struct History<'a> {
    pub(super) scope: &'a AccountScopeId,
    /// The nonce after the highest stored one.
    pub(super) next: Option<u64>,
    /// How many transactions of the account are in blocks.
    pub(super) count: u64,
}

impl History<'_> {
    /// Whether nothing was ever stored for the account.
    pub(super) fn is_new(&self) -> bool {
        self.next.is_none()
    }

    /// The last nonce whose transaction no node shows, if the database seems to be new because nothing is stored for
    /// the account and no transaction calls a pool.
    pub(super) fn hidden(&self, found: &[FoundUse]) -> Option<u64> {
        if !self.is_new() || found.iter().any(|found| found.kind.concerns_pools()) {
            return None;
        }
        let hidden = found.iter().filter(|found| found.kind == UseKind::NotShown);
        hidden.map(|found| found.nonce).collect::<BTreeSet<u64>>().pop_last()
    }

    /// Why the withdrawal waits if no node shows the transaction with this nonce, in which case the count may be wrong.
    pub(super) fn not_shown(&self, nonce: u64) -> String {
        format!(
            "{}, and no node shows the transaction with nonce {nonce}. If a node is wrong, the withdrawal continues \
             when the node is right. {}",
            self.counts(),
            self.what_to_do(nonce + 1)
        )
    }

    /// Why the withdrawal waits if there are too many transactions to examine each of them.
    pub(super) fn too_long(&self) -> String {
        format!("{}. {}", self.counts(), self.what_to_do(self.count))
    }

    fn counts(&self) -> String {
        let (account, count) = (self.scope.address(), self.count);
        match self.next {
            None => format!(
                "a node shows {count} transactions of {account}, and this database has signed none for it"
            ),
            Some(next) => format!(
                "a node shows {count} transactions of {account}, and this database knows of {next}"
            ),
        }
    }

    fn what_to_do(&self, start: u64) -> String {
        format!(
            "If the account has really sent them, and an earlier or copied database of this server has paid no open \
             withdrawal with them, confirm it once: run `grid-batch nonce {} {start} start --reason TEXT`",
            self.scope
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_new_database_asks_about_hidden_nonces() {
        let scope = AccountScopeId::new(1, Default::default());
        let found = [3, 4].map(FoundUse::not_shown);
        let hidden = |next| History { scope: &scope, next, count: 6 }.hidden(&found);
        assert_eq!((hidden(None), hidden(Some(3))), (Some(4), None));
        let paid = FoundUse { kind: UseKind::UnknownPayment, ..FoundUse::not_shown(5) };
        let history = History { scope: &scope, next: None, count: 6 };
        assert_eq!(history.hidden(&[FoundUse::not_shown(4), paid]), None);
    }
}
