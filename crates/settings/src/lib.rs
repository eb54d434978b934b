#![doc = include_str!("../README.md")]

mod error;
mod secret;
mod setting;
mod table;
mod value;
mod values;

pub use error::{ConfigError, Origin};
pub use secret::{NOT_SHOWN, may_hold_secret, redact_secrets};
pub use setting::{Form, Setting};
pub use table::{SettingTable, edit_distance};
pub use value::{DurationOrZero, FilePath, NodeUrl, Pair, SettingValue, looks_like_key};
pub use values::{GivenValue, SettingValues};
