//! What the commands share that talk to a running server.

mod retries;
mod server;
mod table;
mod text;

pub(super) use retries::Retries;
pub(super) use server::{Server, VARIABLES, flags};
pub(super) use table::Table;
pub(super) use text::{age, field};
