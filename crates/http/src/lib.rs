#![doc = include_str!("../README.md")]

mod client;
mod connect;
mod connection;
mod error;
mod pool;
mod probe;
mod request_target;
mod response;
mod stream;
mod tls;
mod url;
mod websocket;

pub use client::{HttpClient, HttpOptions};
pub use error::HttpError;
pub use probe::WebSocketProbe;
pub use response::HttpResponse;
pub use url::{join, origin};
pub use websocket::{TextFrames, WebSocketOptions, open_websocket};
