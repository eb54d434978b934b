//! What is read below `/v1`.

mod batch;
mod explain;
mod list;
mod own_submit;
mod services;
mod store_errors;
