use std::sync::Arc;

use grid_batch_withdrawals::Withdrawal;

use crate::{http::ApiError, withdrawals::context::WithdrawalContext};

/// Refuses a new withdrawal to a beneficiary that its pool may not pay. One that is stored already gets its
/// usual answer: it was allowed when it was scheduled.
pub(super) async fn check_beneficiary(
    context: &WithdrawalContext,
    withdrawal: &Withdrawal,
) -> Result<(), ApiError> {
    let Err(rule) = context.rules.may_be_paid(&withdrawal.pool, &withdrawal.beneficiary) else {
        return Ok(());
    };
    let (store, id) = (Arc::clone(&context.store), withdrawal.id);
    let read = move || store.withdrawal(&id).map_err(ApiError::read_failed);
    match context.api.reads.run(read).await? {
        Some(_) => Ok(()),
        None => Err(ApiError::BeneficiaryNotAllowed { rule }),
    }
}
