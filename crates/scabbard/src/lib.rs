#![doc = include_str!("../README.md")]

mod absence;
mod applied_transactions;
mod asked_batches;
mod batch_history;
mod context;
mod earlier_submission;
mod events;
mod evidence;
mod evidence_detail;
mod identity;
mod message;
mod node_client;
mod node_reports;
mod options;
mod outcome;
mod peer_listeners;
mod replay;
mod replay_wait;
mod scabbard;
mod sender;
mod state_roots;
mod status_query;
mod status_reader;
mod status_response;
mod subscription_check;
mod subscriptions;
mod unknown_services;

pub use events::ScabbardEvents;
pub use evidence::ScabbardEvidenceReader;
pub use identity::ScabbardIdentityReader;
pub use options::{PeerService, ScabbardError, ScabbardOptions};
pub use scabbard::Scabbard;
pub use sender::ScabbardSender;
pub use status_reader::ScabbardStatusReader;
pub use unknown_services::ScabbardServiceCheck;
