use alloy_primitives::B256;
use grid_batch_core::BatchResult;
use grid_batch_withdrawals::{NewSignedTransaction, SignedTransaction};
use log::info;

use crate::{
    GasPrice,
    sender::{
        answer::{self, Step},
        task::Task,
    },
};

impl Task<'_> {
    /// What was signed, where it was this submission's turn to sign: from here on it may be seen.
    pub(crate) fn stored(
        &self,
        signed: BatchResult<Option<SignedTransaction>>,
    ) -> Step<NewSignedTransaction> {
        let Some(SignedTransaction { signed, .. }) = signed.map_err(answer::without_store)? else {
            return Err(answer::unknown("it is not this submission's turn to sign any more"));
        };
        info!(
            service:% = self.service_id(), withdrawal:% = self.payment.withdrawal_id,
            nonce = signed.nonce, hash:% = B256::from(signed.hash),
            max_fee:% = GasPrice::from_wei(signed.max_fee), is_filler = signed.is_filler; "signed"
        );
        Ok(signed)
    }
}
