#![doc = include_str!("../README.md")]

mod api_error;
mod caller;
mod events;
mod evidence;
mod frame;
mod nodes;
mod options;
mod outcome;
mod sawtooth;
mod sender;
mod status_reader;
mod statuses;

pub use events::SawtoothEvents;
pub use evidence::SawtoothEvidenceReader;
pub use options::{BasicAuth, SawtoothOptions};
pub use sawtooth::Sawtooth;
pub use sender::SawtoothSender;
pub use status_reader::SawtoothStatusReader;
