#![doc = include_str!("../README.md")]

mod client;
mod connect;
mod connection;
mod error;
mod forwarder;
mod pool;
mod probe;
mod request_target;
mod response;
mod stream;
mod streamed;
mod submission;
mod tls;
mod url;
mod websocket;

pub use client::{HttpClient, HttpOptions};
pub use error::HttpError;
pub use forwarder::Forwarder;
pub use probe::WebSocketProbe;
pub use response::HttpResponse;
pub use streamed::StreamedResponse;
pub use submission::submission_answer;
pub use url::{join, origin};
pub use websocket::{TextFrames, WebSocketOptions, open_websocket};
