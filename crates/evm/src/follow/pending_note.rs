use grid_batch_withdrawals::{AssignedNonce, Payment};

use crate::{context::EvmContext, price::covers_price, send::above_cap, values::GasPrice};

/// Why a transaction that nodes have is not mined, if its fee is the reason; or that it pays more than the present
/// cap. The price is the one that the sender has read last: the sender reads it before it sends a pending
/// transaction again.
pub(super) fn pending_note(
    context: &EvmContext,
    payment: &Payment,
    assigned: &AssignedNonce,
) -> Option<String> {
    let max_fee = assigned.transactions.iter().map(|it| it.signed.max_fee).max()?;
    if let Some(cap) = context.cap_at(&payment.pool).filter(|cap| max_fee > cap.wei()) {
        let above = above_cap(max_fee, cap);
        return Some(format!(
            "its transaction to be mined; it was sent before the cap was lowered: {above}"
        ));
    }
    let within = context.options.resend_after.saturating_mul(2);
    let quote = context.facts.quote(context.monotonic(), within)?;
    (!covers_price(max_fee, &quote)).then(|| {
        format!(
            "its transaction to be mined; the gas price is {}, above the {} that it pays at most",
            GasPrice::from_wei(quote.price),
            GasPrice::from_wei(max_fee)
        )
    })
}
