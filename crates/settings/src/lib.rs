#![doc = include_str!("../README.md")]

mod environment;
mod error;
mod file;
mod given;
mod log_filter;
mod log_format;
mod of_services;
mod old;
mod print;
mod readable_secrets;
mod reference;
mod requests;
mod secret;
mod section;
mod services;
mod setting;
mod source;
mod table;
mod value;
mod values;

pub use error::{ConfigError, Origin};
pub use given::GivenValue;
pub use log_filter::LogFilter;
pub use log_format::LogFormat;
pub use of_services::OfServices;
pub use old::{Now, OldName, OldSetting};
pub use readable_secrets::ReadableSecret;
pub use reference::settings_reference;
pub use requests::{RequestOptions, RequestsTo, redact_header};
pub use secret::{NOT_SHOWN, may_hold_secret, redact_secrets};
pub use services::{nodes_of_services, peers};
pub use setting::{Form, Setting};
pub use source::SourceValues;
pub use table::{SettingName, SettingTable, edit_distance};
pub use value::{DurationOrZero, FileMode, NodeUrl, SettingValue, looks_like_key};
pub use values::SettingValues;
