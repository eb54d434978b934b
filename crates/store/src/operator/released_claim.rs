//! An operator has the owner of a service give it up.

use diesel::{
    QueryableByName,
    sql_types::{Nullable, Text},
};
use grid_batch_core::{ActionEffect, ActionOutcome, ActionRefusal, ServiceId};

use crate::sql::{
    Connection, Statement, StoreError,
    rows::{no_lane, with_submitter},
};

/// Ends the claim of a service, as its owner does at its end: not while a batch is with a submitter. Any
/// instance may take it next, also the same one.
pub(super) fn release_claim(
    connection: &mut Connection,
    service_id: &ServiceId,
) -> Result<ActionOutcome, StoreError> {
    let dialect = connection.dialect();
    let lock = dialect.locking("for update of c");
    let statement = Statement::new(
        dialect,
        format!(
            "-- lock_claim
             select c.claimant from service_id_claims c where c.service_id = ? {lock}"
        ),
    )
    .text(service_id.as_str());
    let rows: Vec<ClaimantRow> = connection.load(&statement)?;
    let Some(ClaimantRow { claimant }) = rows.into_iter().next() else {
        return Ok(ActionOutcome::NotFound);
    };
    let Some(owner) = claimant else {
        return Ok(ActionOutcome::Refused(ActionRefusal::NotClaimed));
    };
    // No batch is taken under the lock, so what is with a submitter is certain.
    let not_busy = no_lane("service_id_claims", &with_submitter("s"));
    let statement = Statement::new(
        dialect,
        format!(
            "-- release_claim
             update service_id_claims set claimant = null
             where service_id_claims.service_id = ? and {not_busy}"
        ),
    )
    .text(service_id.as_str());
    if connection.execute(&statement)? == 0 {
        return Ok(ActionOutcome::Refused(ActionRefusal::ClaimInUse));
    }
    Ok(ActionOutcome::Done(ActionEffect {
        before: format!("claimed by {owner}"),
        after: "claimed by no instance".to_owned(),
        state: None,
        next_waits: true,
    }))
}

#[derive(QueryableByName)]
struct ClaimantRow {
    #[diesel(sql_type = Nullable<Text>)]
    claimant: Option<String>,
}
