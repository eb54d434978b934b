//! The services in which no batch has ended yet, and who opened them.
//!
//! A ledger that has a service soon ends a batch of it. One that was made up stays new for ever, so the
//! number of new services is limited.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use diesel::{QueryableByName, sql_types::BigInt};
use grid_batch_core::SignerId;

use crate::sql::{Connection, Rows, Statement, StoreError};

/// How many new services there are.
#[derive(Debug, Default)]
pub(super) struct NewServiceCounts {
    /// Those that each signer has opened.
    pub(super) of_signers: HashMap<SignerId, u64>,
    pub(super) in_all: u64,
}

pub(super) fn count(
    connection: &mut Connection,
    signers: &BTreeSet<SignerId>,
) -> Result<NewServiceCounts, StoreError> {
    let signers: Vec<&SignerId> = signers.iter().collect();
    let statement = Statement::new(
        connection.dialect(),
        "-- count_new_services
         select x.number,
             (select count(*) from new_services n where n.signer = x.signer) as of_signer,
             (select count(*) from new_services) as in_all
         from {x}",
    )
    .rows(
        Rows::default()
            .long("number", (0..).take(signers.len()))
            .bytes("signer", signers.iter().map(|signer| &signer.as_bytes()[..])),
    );
    let rows: Vec<CountRow> = connection.load(&statement)?;
    let mut counts = NewServiceCounts::default();
    for row in rows {
        let signer = usize::try_from(row.number).ok().and_then(|number| signers.get(number));
        let signer =
            signer.ok_or_else(|| StoreError::corrupt("a signer that was not asked for"))?;
        let count = |count| u64::try_from(count).map_err(StoreError::corrupt);
        counts.of_signers.insert(**signer, count(row.of_signer)?);
        counts.in_all = count(row.in_all)?;
    }
    Ok(counts)
}

/// Records who opened services.
pub(super) fn record(
    connection: &mut Connection,
    openers: &BTreeMap<&str, SignerId>,
) -> Result<(), StoreError> {
    let statement = Statement::new(
        connection.dialect(),
        "-- insert_new_services
         insert into new_services (service_id, signer)
         select service_id, signer from {x} where true
         on conflict do nothing",
    )
    .rows(
        Rows::default()
            .text("service_id", openers.keys().copied())
            .bytes("signer", openers.values().map(|signer| &signer.as_bytes()[..])),
    );
    connection.execute(&statement).map(drop)
}

#[derive(QueryableByName)]
struct CountRow {
    #[diesel(sql_type = BigInt)]
    number: i64,
    #[diesel(sql_type = BigInt)]
    of_signer: i64,
    #[diesel(sql_type = BigInt)]
    in_all: i64,
}
