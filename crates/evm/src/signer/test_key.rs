pub(crate) use super::account_signer::recover;
use super::key::GasAdminKey;

/// The key of the first account of every development chain.
pub(crate) const DEVELOPMENT: &str =
    "ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80";

pub(crate) fn key() -> GasAdminKey {
    DEVELOPMENT.parse().unwrap()
}
