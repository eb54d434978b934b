use std::fmt;

use grid_batch_core::ServiceId;

/// Checks the values of a withdrawal and brings them into their canonical form. The error says, for the client, which
/// rule the text breaks.
#[cfg_attr(feature = "mocks", mockall::automock)]
pub trait WithdrawalRules: fmt::Debug + Send + Sync {
    /// The address of a pool, and the service that orders its withdrawals.
    fn pool(&self, text: &str) -> Result<(String, ServiceId), String>;

    /// The address of a pool, which may no longer be configured.
    fn pool_address(&self, text: &str) -> Result<String, String>;

    /// The address of a beneficiary.
    fn beneficiary(&self, text: &str) -> Result<String, String>;

    /// Whether a pool may pay this beneficiary. Both are in their canonical form.
    fn may_be_paid(&self, pool: &str, beneficiary: &str) -> Result<(), String> {
        let _ = (pool, beneficiary);
        Ok(())
    }

    /// An amount.
    fn amount(&self, text: &str) -> Result<String, String>;
}
