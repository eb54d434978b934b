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
mod in_chain;
mod invalid_review;
mod node_check;
mod node_record;
mod nodes;
mod options;
mod outages;
mod outcome;
mod pass_through;
mod publisher;
mod rest_client;
mod sawtooth;
mod sender;
mod settings;
mod status_reader;
mod statuses;
mod transaction_check;

pub use facts::facts;
pub use options::{BasicAuth, SawtoothOptions};
pub use sawtooth::Sawtooth;
pub use settings::SawtoothSettings;
