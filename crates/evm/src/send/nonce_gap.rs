use std::ops::RangeInclusive;

use alloy_primitives::Address;
use grid_batch_core::ServiceId;

use super::{
    answer::{self, SendResult},
    attempt::SendAttempt,
};

impl SendAttempt<'_> {
    /// Parks the withdrawal that has this nonce if too many lower ones are missing at the node.
    pub(super) async fn check_gap(&self, count: u64, nonce: u64) -> SendResult<()> {
        self.check_gap_below(count, nonce, true).await
    }

    /// The same for the nonce that would be assigned next.
    pub(super) async fn check_gap_before_next(&self, count: u64) -> SendResult<()> {
        let next = self.context.store.next_nonce(self.service_id()).await;
        let next = next.map_err(answer::store_failed)?.unwrap_or_default();
        self.check_gap_below(count, next, false).await
    }

    async fn check_gap_below(&self, count: u64, nonce: u64, is_signed: bool) -> SendResult<()> {
        let limit = self.context.options.longest_gap;
        if nonce.saturating_sub(count) <= limit {
            return Ok(());
        }
        let unsettled = self.context.store.unsettled_nonces(self.service_id()).await;
        let unsettled = unsettled.map_err(answer::store_failed)?;
        let filled = unsettled.stored.iter().filter(|it| it.to_fill);
        let filled = filled.filter(|it| (count..nonce).contains(&it.nonce)).count();
        let filled = u64::try_from(filled).unwrap_or(u64::MAX);
        if nonce.saturating_sub(count).saturating_sub(filled) <= limit {
            return Ok(());
        }
        let missing = count..=nonce - 1;
        Err(self.parked(gap_text(self.service_id(), self.admin, missing, limit, is_signed)))
    }
}

/// Why the withdrawal is parked until the gap is shorter or an operator requests that the nonces be filled.
/// `is_signed`: a transaction is signed with a nonce above the gap.
fn gap_text(
    service_id: &ServiceId,
    account: Address,
    missing: RangeInclusive<u64>,
    limit: u64,
    is_signed: bool,
) -> String {
    let (first, last) = missing.into_inner();
    let (next, missing) = (last + 1, last + 1 - first);
    let what_to_do = if is_signed {
        format!(
            "If they were never used, it cannot be signed again, because its transaction can be \
             mined later: run `grid-batch nonce {service_id} {first}-{last} fill --reason TEXT`, which sends an \
             empty transfer for each free one of these {missing} nonces"
        )
    } else {
        format!(
            "If they were never used, run `grid-batch nonce {service_id} {first} start --reason TEXT`"
        )
    };
    format!(
        "the node shows no transactions of {account} with the nonces {first} to {last}, and the next one is \
         {next}: more than evm.longest_gap ({limit}) nonces are missing, the lowest is {first}. If the node lags \
         behind, nothing has to be done. {what_to_do}. If the chain has lost these transactions, set \
         evm.longest_gap to {missing} and restart: what is stored is sent again, and free nonces are filled with \
         empty transfers"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gap_names_the_command_that_closes_it() {
        let gap = |is_signed| {
            let service_id = "account".parse().unwrap();
            gap_text(&service_id, Address::ZERO, 5..=69, 64, is_signed)
        };
        for (text, command) in
            [(gap(true), "nonce account 5-69 fill"), (gap(false), "nonce account 5 start")]
        {
            assert!(text.contains("the nonces 5 to 69, and the next one is 70"), "{text}");
            assert!(text.contains("set evm.longest_gap to 65"), "{text}");
            assert!(text.contains(command), "{text}");
        }
    }
}
