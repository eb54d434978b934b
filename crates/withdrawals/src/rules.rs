use std::fmt;

use grid_batch_core::ServiceId;

/// Checks the values of a withdrawal and brings them into their canonical form. An error is the rule
/// that the text breaks, written for the client.
pub trait WithdrawalRules: fmt::Debug + Send + Sync {
    /// The address of a pool, and the service that orders its withdrawals.
    fn pool(&self, text: &str) -> Result<(String, ServiceId), String>;

    /// The address of a beneficiary.
    fn beneficiary(&self, text: &str) -> Result<String, String>;

    /// An amount.
    fn amount(&self, text: &str) -> Result<String, String>;
}
