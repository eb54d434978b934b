//! What the crate promises, seen from outside.

mod any_bytes;
mod fixtures;
mod genuine;
mod invariants;
mod libraries;
mod made;
mod refused;
mod tokens;
