//! Tests of the public interface.

mod arbitrary_bytes;
mod builders;
mod client_lists;
mod crypto_libraries;
mod fixtures;
mod invariants;
mod refusals;
mod tokens;
