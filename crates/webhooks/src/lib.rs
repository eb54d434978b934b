#![doc = include_str!("../README.md")]

mod addresses;
mod deliverer;
mod delivery;
mod message;
mod options;
mod request;
mod running;
mod scanned;
mod signature;

pub use addresses::{AllowedNetwork, AllowedNetworkError, AllowedNetworks};
pub use grid_batch_support::ShutdownHandle;
pub use options::DeliveryOptions;
pub use running::{DeliveryParts, RunningDeliverer};
