#![doc = include_str!("../README.md")]

mod answer;
mod batches;
mod caller;
mod events;
mod evidence;
mod options;
mod outcome;
mod question;
mod recent;
mod scabbard;
mod seen;
mod sender;
mod shared;
mod statuses;
mod watch;
mod words;

pub use events::ScabbardEvents;
pub use evidence::ScabbardEvidenceReader;
pub use options::{ScabbardError, ScabbardOptions};
pub use scabbard::Scabbard;
pub use sender::ScabbardSender;
pub use statuses::ScabbardStatusReader;
