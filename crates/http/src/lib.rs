#![doc = include_str!("../README.md")]

mod address;
mod answer;
mod client;
mod error;
mod one_line;
mod socket;
mod target;
mod tls;

pub use address::{join, origin};
pub use answer::Answer;
pub use client::{HttpClient, HttpOptions};
pub use error::HttpError;
pub use one_line::one_line;
pub use socket::{SocketOptions, TextFrames, open_socket};
