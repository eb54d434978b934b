//! What is read below `/v1`.

mod batch;
mod list;
mod own_submit;
mod store_errors;
