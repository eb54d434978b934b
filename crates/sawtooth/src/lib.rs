#![doc = include_str!("../README.md")]

mod api_error;
mod applied_transactions;
mod ask_ahead;
mod before_post;
mod event_frame;
mod events;
mod evidence;
mod facts;
mod identity;
mod invalid_review;
mod node_check;
mod node_record;
mod nodes;
mod options;
mod outages;
mod outcome;
mod pass_through;
mod rest_client;
mod sawtooth;
mod sender;
mod status_reader;
mod statuses;
mod transaction_check;

pub use ask_ahead::SawtoothAskAhead;
pub use events::SawtoothEvents;
pub use evidence::SawtoothEvidenceReader;
pub use facts::facts;
pub use identity::SawtoothIdentityReader;
pub use node_check::SawtoothNodeCheck;
pub use options::{BasicAuth, SawtoothOptions};
pub use pass_through::SawtoothPassThrough;
pub use sawtooth::Sawtooth;
pub use sender::SawtoothSender;
pub use status_reader::SawtoothStatusReader;
pub use transaction_check::SawtoothTransactionCheck;
