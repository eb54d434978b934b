#![doc = include_str!("../README.md")]

mod collector;
mod environment;
mod export;
mod spans;
mod steps;

pub use environment::{CollectorOptions, EnvironmentError};
pub use export::TraceExport;
