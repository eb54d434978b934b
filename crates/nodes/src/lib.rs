#![doc = include_str!("../README.md")]

mod confirmation;
mod contact;
mod identity;
#[cfg(any(test, feature = "mocks"))]
pub mod mocks;
mod node;
mod pool;
mod requests;
mod resolver;
mod routes;

pub use identity::{Identity, IdentityAnswer};
pub use node::Node;
pub use pool::{NodePool, NodePoolOptions};
pub use requests::{RequestEnd, RequestGroup, RequestInFlight, RequestLimits};
pub use resolver::{NO_ADDRESS, NodeResolver, StatusUrlResolver, UrlResolver};
