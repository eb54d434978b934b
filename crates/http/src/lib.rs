#![doc = include_str!("../README.md")]

mod client;
mod connections;
mod error;
mod forwarder;
mod headers;
#[cfg(feature = "mocks")]
pub mod mocks;
mod probe;
mod request;
mod requests;
mod response;
mod streamed;
mod submission;
mod tls;
mod url;
mod websocket;

pub use client::{HttpClient, HttpOptions};
pub use error::HttpError;
pub use forwarder::Forwarder;
pub use headers::HttpHeaders;
pub use probe::WebSocketProbe;
pub use requests::HttpRequests;
pub use response::HttpResponse;
pub use streamed::StreamedResponse;
pub use submission::submission_answer;
pub use tls::{Pem, TlsOptions};
pub use url::{join, origin};
pub use websocket::{TextFrames, WebSocketOptions};
