use alloy_primitives::B256;
use grid_batch_core::{BatchError, BatchResult, Timestamp};
use grid_batch_withdrawals::{NonceUse, Terms, UnpaidWithdrawal, UnsettledNonces};
use log::{info, warn};

use super::{
    found_use::{FoundUse, UseKind},
    history::History,
    matching::{Candidates, match_uses},
    own_use::find_mined,
    search::NonceSearch,
};
use crate::{
    account::{Account, AccountError},
    node::{BlockTag, NodeClient, NodeError, TransactionReceipt},
};

/// How many nonces are settled at once, so that an attempt does not last too long.
pub(super) const MAX_AT_ONCE: usize = 50;

/// Whether every nonce that the chain has used is settled.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Settled {
    /// All nonces below this transaction count are settled.
    All { count: u64 },
    /// Not yet, for this reason. More blocks or more requests are needed, or no node shows a transaction.
    NotYet(String),
    /// It cannot be decided what a nonce was used for.
    Undecided { note: String },
}

impl<'a> Account<'a> {
    /// Settles the nonces that the chain has used: finds out and stores what each was used for.
    ///
    /// The transaction count of the first node is used; the others help to find transactions.
    pub(crate) async fn settle_nonces(&self) -> Result<Settled, AccountError> {
        let store = &self.context.store;
        let Some(node) = self.nodes.first() else {
            return Err(BatchError::Unavailable("no node is configured".to_owned()).into());
        };
        let count = node.transaction_count(self.address(), BlockTag::Latest).await?;
        let unsettled = store.unsettled_nonces(self.service_id()).await?;
        let next = unsettled.next.unwrap_or_default();
        let (stored, own) = self.used_nonces(node, &unsettled, count).await?;
        self.close_final(node, own).await?;
        if count <= next && stored.is_empty() {
            return Ok(Settled::All { count });
        }
        let not_yet = |reason: &str| Ok(Settled::NotYet(reason.to_owned()));
        if self.final_count(node).await? != Some(count) {
            return not_yet(
                "the gas admin has transactions that are not stored; waiting until they are final",
            );
        }
        if self.is_disputed(node).await? {
            return not_yet("the nodes show different blocks; waiting until they agree");
        }
        let Some(search) = self.search().await? else { return Ok(Settled::All { count }) };
        let history = History { scope: self.scope, next: unsettled.next, count };
        let Some(first) = self.first_nonce(&search, &history).await? else {
            return Ok(Settled::NotYet(history.not_shown(count - 1)));
        };
        let mut nonces: Vec<u64> = stored.into_iter().chain(first..count).collect();
        let is_complete = nonces.len() <= MAX_AT_ONCE;
        if !is_complete && history.is_new() && !search.finds_payments(first..count).await? {
            return Ok(Settled::NotYet(history.too_long()));
        }
        nonces.truncate(MAX_AT_ONCE);
        let found = search.find_uses(&nonces).await?;
        if let Some(hidden) = history.hidden(&found) {
            return Ok(Settled::NotYet(history.not_shown(hidden)));
        }
        if let Some(nonce) = self.unconfirmed(&found, &unsettled).await? {
            return Ok(Settled::NotYet(format!(
                "not enough nodes show the transaction that used nonce {nonce}; waiting until they do"
            )));
        }
        match self.settle(&search, found, &unsettled).await? {
            Some(note) => Ok(Settled::Undecided { note: self.what_to_do(&note) }),
            None if is_complete => Ok(Settled::All { count }),
            None => not_yet("the server is examining earlier transactions of the gas admin"),
        }
    }

    /// The stored nonces that the chain has used for something other than what is stored, and the receipts of some that
    /// were used for their stored transactions.
    async fn used_nonces(
        &self,
        node: &'a NodeClient,
        unsettled: &UnsettledNonces,
        count: u64,
    ) -> Result<(Vec<u64>, Vec<TransactionReceipt>), AccountError> {
        let (mut nonces, mut own) = (Vec::new(), Vec::new());
        for stored in &unsettled.stored {
            let (nonce, is_used) = (stored.nonce, stored.nonce < count);
            let is_enough = own.len() >= MAX_AT_ONCE;
            if stored.undecided.is_none() && (!is_used || is_enough) {
                continue;
            }
            match find_mined(node, &stored.hashes).await? {
                None => nonces.push(nonce),
                // An undecided nonce is left to an operator.
                Some(found) if stored.undecided.is_none() => own.push(found),
                Some(_) => {}
            }
        }
        Ok((nonces, own))
    }

    /// The first of these nonces with which a withdrawal was signed although too few nodes show that another
    /// transaction used it. A retry of the withdrawal would get another nonce, and both could be mined.
    async fn unconfirmed(
        &self,
        found: &[FoundUse],
        unsettled: &UnsettledNonces,
    ) -> Result<Option<u64>, NodeError> {
        let is_signed = |nonce: u64| {
            let mut stored = unsettled.stored.iter().filter(|it| it.undecided.is_none());
            stored.any(|it| it.nonce == nonce && !it.hashes.is_empty())
        };
        for FoundUse { nonce, mined, .. } in found.iter().filter(|found| is_signed(found.nonce)) {
            let Some((hash, _)) = mined else { continue };
            let agreeing = self.context.options.agreeing_nodes;
            if !self.is_foreign_use_final(*nonce, *hash, agreeing).await? {
                return Ok(Some(*nonce));
            }
        }
        Ok(None)
    }

    /// The transaction count as of the last final block.
    async fn final_count(&self, node: &NodeClient) -> Result<Option<u64>, NodeError> {
        let latest = node.block_number().await?;
        let last = latest.saturating_add(1).checked_sub(self.context.options.confirmations);
        let Some(last) = last else { return Ok(None) };
        node.transaction_count(self.address(), BlockTag::Number(last)).await.map(Some)
    }

    /// Whether other nodes have another block than this one at the height of its last final block.
    async fn is_disputed(&self, node: &NodeClient) -> Result<bool, NodeError> {
        if self.nodes.len() == 1 {
            return Ok(false);
        }
        let latest = node.block_number().await?;
        let last = latest.saturating_add(1).saturating_sub(self.context.options.confirmations);
        let Some(block) = node.block(last).await? else { return Ok(true) };
        Ok(self.find_dispute(node, block.id).await.is_some())
    }

    /// `None`: there is no withdrawal that could have been paid.
    async fn search(&self) -> BatchResult<Option<NonceSearch<'a>>> {
        let since = self.context.store.unsettled_since(self.service_id()).await?;
        let Some(since) = since else { return Ok(None) };
        Ok(Some(NonceSearch { account: *self, pools: self.pools().await?, since }))
    }

    /// The first nonce to examine. Earlier nonces were used before anything was stored for the account, and are
    /// recorded as settled. `None`: no node shows the last transaction.
    ///
    /// A node may report a wrong transaction count, even for past blocks. A nonce that was used to sign cannot be taken
    /// back, so a count is trusted only if a node shows the transaction that it ends with.
    async fn first_nonce(
        &self,
        search: &NonceSearch<'a>,
        history: &History<'_>,
    ) -> Result<Option<u64>, AccountError> {
        let (next, count) = (history.next.unwrap_or_default(), history.count);
        if count <= next {
            return Ok(Some(count));
        }
        if !search.shows(count - 1).await? {
            return Ok(None);
        }
        let before = search.count_before().await?.unwrap_or_default().min(count);
        let Some(last) = before.checked_sub(1).filter(|last| *last >= next) else {
            return Ok(Some(next));
        };
        if before < count && !search.shows(last).await? {
            return Ok(Some(next));
        }
        let note = format!("nonce {last} was used before the first withdrawal was scheduled");
        let nonce_use = NonceUse::Elsewhere { hash: None, note };
        self.store_use(last, search.since, nonce_use).await?;
        Ok(Some(before))
    }

    /// Settles the nonces of these uses. Returns the note about the first undecided one.
    async fn settle(
        &self,
        search: &NonceSearch<'a>,
        mut found: Vec<FoundUse>,
        unsettled: &UnsettledNonces,
    ) -> Result<Option<String>, AccountError> {
        let first_open = self.context.store.first_open(self.service_id()).await?;
        let candidates = self.candidates(&mut found, first_open).await?;
        let mut first_undecided = None;
        for (found, (nonce, nonce_use)) in found.iter().zip(match_uses(&found, &candidates)) {
            if let NonceUse::Undecided { note, .. } = &nonce_use {
                first_undecided.get_or_insert_with(|| note.clone());
                if unsettled.stored.iter().any(|it| it.undecided.as_ref() == Some(note)) {
                    continue;
                }
            }
            self.log_use(nonce, &nonce_use);
            let used_at = found.mined.map_or(search.since, |(_, mined_at)| mined_at);
            self.store_use(nonce, used_at, nonce_use).await?;
        }
        Ok(first_undecided)
    }

    /// The withdrawals that these transactions may have paid.
    ///
    /// What is stored as a call is a call, even if it calls a pool that was configured later.
    pub(super) async fn candidates(
        &self,
        found: &mut [FoundUse],
        next_scheduled_at: Option<Timestamp>,
    ) -> BatchResult<Candidates> {
        let mut candidates = Candidates { next_scheduled_at, ..Candidates::default() };
        for found in found {
            let UseKind::Own { terms, as_call, .. } = &found.kind else { continue };
            let (terms, as_call) = (terms.clone(), as_call.clone());
            if !self.find_unpaid(&mut candidates, &as_call).await?.is_empty() {
                found.treat_as_call();
            } else if terms != as_call {
                self.find_unpaid(&mut candidates, &terms).await?;
            }
        }
        Ok(candidates)
    }

    async fn find_unpaid<'c>(
        &self,
        candidates: &'c mut Candidates,
        terms: &Terms,
    ) -> BatchResult<&'c [UnpaidWithdrawal]> {
        if !candidates.by_terms.contains_key(terms) {
            let store = &self.context.store;
            let unpaid = store.unpaid_withdrawals(self.service_id(), terms).await?;
            candidates.by_terms.insert(terms.clone(), unpaid);
        }
        Ok(candidates.by_terms.get(terms).map_or(&[], Vec::as_slice))
    }

    /// Stores what the chain has used a nonce for.
    pub(super) async fn store_use(
        &self,
        nonce: u64,
        used_at: Timestamp,
        nonce_use: NonceUse,
    ) -> BatchResult<()> {
        let (store, service_id) = (&self.context.store, self.service_id());
        if store.settle_nonce(service_id, nonce, used_at, nonce_use).await? {
            return Ok(());
        }
        let changed = format!("nonce {nonce} of {service_id} was changed meanwhile");
        Err(BatchError::Unavailable(changed))
    }

    pub(super) fn log_use(&self, nonce: u64, nonce_use: &NonceUse) {
        let service = self.scope;
        match nonce_use {
            NonceUse::Withdrawal { id, transaction } => info!(
                service:%, withdrawal:% = id, nonce, hash:% = B256::from(transaction.hash);
                "adopted a transaction that is on the chain and was not stored"
            ),
            NonceUse::Elsewhere { note, .. } => warn!(
                service:%, note = note.as_str();
                "a transaction of the gas admin belongs to no stored withdrawal"
            ),
            NonceUse::Undecided { note, .. } => warn!(
                service:%, note = note.as_str();
                "nothing is signed for the gas admin until an operator decides"
            ),
        }
    }

    fn what_to_do(&self, note: &str) -> String {
        let service_id = self.scope;
        format!(
            "{note}; look at the chain, then run `grid-batch nonce {service_id} NONCE elsewhere --reason TEXT`, or, if \
             it was used for an open withdrawal, with the id of the withdrawal in place of elsewhere; FIRST-LAST in \
             place of NONCE decides several"
        )
    }
}
