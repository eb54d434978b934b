mod fixed;
mod health;
mod node_memory;
mod nodes;
mod per_service;

pub use fixed::FixedUrlResolver;
pub use health::UrlHealth;
pub use nodes::{NoNodesError, NodeChoice, NodeUrlResolver};
pub use per_service::PerServiceUrlResolver;

/// The prefix of a resolver's answer when it has no address for a scope. The reason follows it.
///
/// The batch is not sent, and its outcome is
/// [`Refused`](grid_batch_core::Outcome::Refused).
pub const NO_ADDRESS: &str = "no-address:";
