use std::fmt;

use grid_batch_core::ServiceId;

/// What may be asked of a chain's pools. An error is the rule that a text breaks, for its sender to
/// read.
pub trait WithdrawalRules: fmt::Debug + Send + Sync {
    /// The pool of this address, in the one form, with the service that orders its withdrawals.
    fn pool(&self, text: &str) -> Result<(String, ServiceId), String>;

    /// The beneficiary of this address, in the one form.
    fn beneficiary(&self, text: &str) -> Result<String, String>;

    /// The amount, in the one form.
    fn amount(&self, text: &str) -> Result<String, String>;
}
