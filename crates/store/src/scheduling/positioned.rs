use grid_batch_core::{DeclaredAccess, ServiceId};

use crate::sql::StoreError;

/// An open batch that has a position in the order of its service.
#[derive(Debug, Clone)]
pub(crate) struct PositionedBatch {
    pub(crate) seq: i64,
    pub(crate) service_id: ServiceId,
    pub(crate) position: i64,
    pub(crate) access: DeclaredAccess,
}

/// What a batch declares, from its stored form. Without one, it conflicts with everything.
pub(super) fn decode(stored: Option<&[u8]>) -> Result<DeclaredAccess, StoreError> {
    stored.map_or_else(
        || Ok(DeclaredAccess::everything()),
        |bytes| DeclaredAccess::decode(bytes).map_err(StoreError::corrupt),
    )
}
