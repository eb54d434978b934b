#![doc = include_str!("../README.md")]

pub mod batches;
pub mod claims;
mod clock;
mod error;
pub mod events;
pub mod evidence;
mod excerpt;
mod hex;
mod item_id;
pub mod ledger;
#[cfg(feature = "mocks")]
pub mod mocks;
pub mod operators;
pub mod polling;
pub mod queries;
pub mod queue;
mod scope;
mod service_id;
pub mod tokens;
pub mod webhooks;

pub use clock::{Clock, ManualClock, Moment, MonotonicTime, SystemClock, Timestamp};
pub use error::{BatchError, BatchResult, InternalError};
pub use excerpt::Excerpt;
pub use hex::Hex;
pub use item_id::{ItemId, ItemIdError};
pub use scope::{GlobalScopeId, PeerService, ScopeId, ScopeIdError, ServiceScopeId};
pub use service_id::{ServiceId, ServiceIdError};
