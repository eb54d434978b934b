#![doc = include_str!("../README.md")]

mod client;
mod error;
mod path;
mod submitted;
mod transport;

pub use client::{Client, ClientOptions};
pub use error::{ClientError, Problem};
pub use grid_batch_http::HttpResponse;
pub use path::{given, path_segment};
pub use submitted::{AcceptedBatch, BatchStatus};
pub use transport::{ClientRequest, Transport};
