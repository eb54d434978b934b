pub(crate) use grid_batch_support::BoundedMap;
