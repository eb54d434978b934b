use grid_batch_withdrawals::NewSignedTransaction;
use log::{debug, warn};

use crate::{
    bid::{Bid, raise, would_be_taken},
    gate::gate,
    sender::{
        answer::{self, Step},
        task::Task,
    },
    transaction::fill,
};

/// So many nonces before the withdrawal's are looked after. A chain does not go back further than
/// that; a node that is so far behind has its own to catch up with.
const MOST: u64 = 64;

impl Task<'_> {
    /// Sends what must be mined before this nonce, of which the node has `count` in blocks: the chain
    /// may have gone back, or the node have forgotten what waited.
    pub(crate) async fn send_before(&self, count: u64, nonce: u64) -> Step<()> {
        let first = count.max(nonce.saturating_sub(MOST));
        if first >= nonce {
            return Ok(());
        }
        let offered = self.shared.records.transactions_from(self.service_id(), first).await;
        let offered = offered.map_err(answer::without_store)?;
        for nonce in first..nonce {
            let offered = offered.iter().find(|signed| signed.nonce == nonce);
            let filler = self.filler(nonce, offered).await?;
            let Some(signed) = filler.as_ref().or(offered) else { continue };
            let outcome = self.broadcast(signed).await.outcome;
            debug!(service:% = self.service_id(), nonce, outcome:%; "sent before the withdrawal");
        }
        Ok(())
    }

    /// Something new that only uses the nonce up, where nothing that may be sent has it, or only what
    /// uses it up and would not be taken today. Where it cannot be signed now, it can later.
    async fn filler(
        &self,
        nonce: u64,
        offered: Option<&NewSignedTransaction>,
    ) -> Step<Option<NewSignedTransaction>> {
        if offered.is_some_and(|signed| !signed.is_filler) {
            return Ok(None);
        }
        let Ok(key) = self.key().cloned() else { return Ok(None) };
        let Some(bid) = self.filler_bid(offered).await? else { return Ok(None) };
        let Ok(gas_limit) = self.node.estimate_gas(self.admin, self.admin, &[].into()).await else {
            return Ok(None);
        };
        let chain_id = self.shared.chain_id;
        let sign = move |nonce| Ok(fill(&key, chain_id, nonce, gas_limit, &bid));
        let filler = self.shared.records.fill_nonce(&self.turn, nonce, sign).await;
        let filler = filler.map_err(answer::without_store)?.map(|filler| filler.signed);
        if filler.is_some() {
            warn!(
                service:% = self.service_id(), nonce;
                "nothing may be sent with this nonce any more: it is filled with a transfer of nothing"
            );
        }
        Ok(filler)
    }

    async fn filler_bid(&self, offered: Option<&NewSignedTransaction>) -> Step<Option<Bid>> {
        let cap = self.cap(self.proposal()?.pool);
        let Ok(quote) = self.quote().await else { return Ok(None) };
        Ok(match offered {
            None => gate(&quote, cap).ok(),
            Some(signed) if would_be_taken(signed.max_fee, &quote) => None,
            Some(signed) => raise((signed.max_fee, signed.tip), &quote, cap),
        })
    }
}
