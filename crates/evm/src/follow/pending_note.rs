use grid_batch_withdrawals::AssignedNonce;

use crate::{context::EvmContext, price::covers_price, values::GasPrice};

/// Why a transaction that nodes have is not mined now, if its fee explains it. The price is one that the
/// sender has read lately: it reads one before it sends a pending transaction again.
pub(super) fn pending_note(context: &EvmContext, assigned: &AssignedNonce) -> Option<String> {
    let within = context.resend_after.saturating_mul(2);
    let quote = context.facts.quote(context.clock.monotonic(), within)?;
    let max_fee = assigned.transactions.iter().map(|it| it.signed.max_fee).max()?;
    (!covers_price(max_fee, &quote)).then(|| {
        format!(
            "its transaction to be mined; the gas price is {}, above the {} that it pays at most",
            GasPrice::from_wei(quote.price),
            GasPrice::from_wei(max_fee)
        )
    })
}
