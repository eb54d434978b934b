//! Transactions of an account, against a mock of the store.

mod list;
mod operations;
mod read;
mod routes;
mod send;
mod test_calls;
