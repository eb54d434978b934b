#![doc = include_str!("../README.md")]

mod error;
mod given;
mod old;
mod secret;
mod setting;
mod source;
mod table;
mod value;
mod values;

pub use error::{ConfigError, Origin};
pub use given::GivenValue;
pub use old::{Now, OldName, OldSetting};
pub use secret::{NOT_SHOWN, may_hold_secret, redact_secrets};
pub use setting::{Form, Setting};
pub use source::SourceValues;
pub use table::{SettingName, SettingTable, edit_distance};
pub use value::{DurationOrZero, FilePath, NodeUrl, SettingValue, looks_like_key};
pub use values::SettingValues;
