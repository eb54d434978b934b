use std::fmt;

use grid_batch_core::ServiceId;

use crate::{Call, CallError, CallRequest, DayLimit, Decoded, EventLog};

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

/// What the token of a client may send.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TokenRules {
    /// The id of the token.
    pub id: String,
    /// The rules. Without any, it may send whatever the account may.
    pub may_send: Vec<String>,
}

/// Checks the values of a call and brings them into their canonical form, and decodes its result.
#[cfg_attr(feature = "mocks", mockall::automock)]
pub trait CallRules: fmt::Debug + Send + Sync {
    /// The service of an account, which is given by its name in the settings, its address or its service. The error is
    /// for the client.
    fn account(&self, text: &str) -> Result<ServiceId, String>;

    /// The address of an account or a contract, in its canonical form.
    fn address(&self, text: &str) -> Result<String, String>;

    /// The call that a client requests from this account.
    fn call(&self, account: &ServiceId, request: &CallRequest) -> Result<Call, CallError>;

    /// Whether the account may send this call. The error says, for the client, what it may do.
    fn may_be_sent(&self, account: &ServiceId, call: &Call) -> Result<(), String>;

    /// The limits of the account and of the token that requests this call from it. Fails if one of them may not send it.
    fn day_limits(
        &self,
        account: &ServiceId,
        token: &TokenRules,
        call: &Call,
    ) -> Result<Vec<DayLimit>, String>;

    /// Whether a token can have these rules.
    fn check_token_rules(&self, rules: &[String]) -> Result<(), String>;

    /// Events, decoded by the declarations of their call. `None`: none of these is of the event.
    fn decode(&self, abi: &[String], logs: &[EventLog]) -> Vec<Option<Decoded>>;
}
