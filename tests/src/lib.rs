//! Tests across crates: the layers of the workspace, and the path of a batch through them.

pub mod sources;
