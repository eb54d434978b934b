#![doc = include_str!("../README.md")]

mod client;
mod error;
mod path;
mod submitted;

pub use client::{Client, ClientOptions};
pub use error::{ClientError, Problem};
pub use path::path_segment;
pub use submitted::{AcceptedBatch, BatchStatus};
