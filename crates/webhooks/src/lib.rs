#![doc = include_str!("../README.md")]

mod deliverer;
mod delivery;
mod message;
mod options;
mod request;
mod scanned;
mod signature;

pub use deliverer::{Deliverer, DeliveryParts};
pub use grid_batch_core::webhooks::{AllowedNetwork, AllowedNetworkError, AllowedNetworks};
pub use grid_batch_support::{Job, Jobs, ShutdownHandle};
pub use options::DeliveryOptions;
