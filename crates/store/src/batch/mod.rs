//! Records a change of a batch: locks its service and lane, applies the transition, writes the lane, and installs the
//! next batch of the service when this one ends.

mod attempt_log;
mod end_waiting;
mod free;
mod lane;
mod lock;
mod overtaken;
mod past;
mod record;
mod unsendable;
mod waiting;
mod write;

use std::collections::BTreeSet;

use grid_batch_core::{ItemId, ServiceId};

pub(crate) use attempt_log::{ActionNote, AttemptLog};
pub(crate) use end_waiting::{WaitingEnd, end_all_waiting, end_waiting};
pub(crate) use free::{evaluate_again, evaluate_answered, fill, release_following};
pub(crate) use lane::Lane;
pub(crate) use lock::{lock_lanes, lock_lanes_of, lock_services, with_locked};
pub(crate) use past::end_past_batches;
pub(crate) use record::{fill_after_holds, record, record_locked};
pub(crate) use unsendable::{Unsendable, end_unsendable};
pub(crate) use waiting::{begin_waiting_holds, hold_waiting, log_without_lane, release_waiting};
pub(crate) use write::write_open;

use crate::sql::Rows;

/// Why a batch that was open when its database was restored is in doubt.
pub(crate) const RESTORED: &str = "the database was restored or lost its latest commits; in the time \
    that was lost, the batch may have been sent to the ledger";

/// The beginning of the reason of a hold that was made because the ledger repeatedly refused the batch.
pub(crate) const REFUSED: &str = "refused by the ledger";

/// The beginning of the reason of a hold, if the ledger may have committed the batch before.
pub(crate) const NOT_PROVED_NEW: &str = "not proved to be new";

/// Names a batch.
pub(crate) type BatchKey = (ServiceId, ItemId);

pub(crate) fn key_rows(keys: &BTreeSet<BatchKey>) -> Rows<'_> {
    Rows::default()
        .text("service_id", keys.iter().map(|key| key.0.as_str()))
        .bytes("batch_id", keys.iter().map(|key| key.1.as_bytes()))
}
