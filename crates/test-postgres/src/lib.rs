#![doc = include_str!("../README.md")]

mod account;
mod database;
mod installation;
mod server;
mod server_url;
mod supervisor;
mod tally;
mod template;
mod workplace;

pub use database::TestDatabase;
pub use server::TestServer;
pub use server_url::URL_VARIABLE;
pub use tally::Tally;
