mod fixed;
mod health;
mod memory;
mod nodes;
mod per_service;

pub use fixed::FixedUrlResolver;
pub use health::UrlHealth;
pub use nodes::{NoNodes, NodeChoice, NodeUrlResolver};
pub use per_service::PerServiceUrlResolver;

/// How a resolver begins its answer when there is no address; the rest of the answer says why.
///
/// Nothing is sent then. It is a matter of configuration, so the outcome is
/// [`Refused`](grid_batch_core::Outcome::Refused).
pub const NO_ADDRESS: &str = "no-address:";
