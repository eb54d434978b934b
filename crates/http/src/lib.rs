#![doc = include_str!("../README.md")]

mod answer;
mod client;
mod error;
mod socket;

pub use answer::Answer;
pub use client::{HttpClient, HttpOptions};
pub use error::HttpError;
pub use socket::{SocketOptions, TextFrames, open_socket};
