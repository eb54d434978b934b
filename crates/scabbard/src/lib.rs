#![doc = include_str!("../README.md")]

mod applied_transactions;
mod batch_history;
mod bounded_map;
mod context;
mod earlier_submission;
mod events;
mod evidence;
mod identity;
mod message;
mod node_client;
mod options;
mod outcome;
mod scabbard;
mod sender;
mod status_query;
mod status_reader;
mod status_response;
mod subscriptions;
mod unknown_services;

pub use events::ScabbardEvents;
pub use evidence::ScabbardEvidenceReader;
pub use identity::ScabbardIdentityReader;
pub use options::{ScabbardError, ScabbardOptions};
pub use scabbard::Scabbard;
pub use sender::ScabbardSender;
pub use status_reader::ScabbardStatusReader;
pub use unknown_services::ScabbardServiceCheck;
