//! Tests across crates: the layers of the workspace, and the path of a batch through them.

mod declared_facts;
pub mod sources;

pub use declared_facts::declared_facts;
