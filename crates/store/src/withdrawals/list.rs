//! Pages of withdrawals. First the withdrawals of the page are selected, by index whatever the states,
//! and then they are read.

use std::{cmp::Reverse, collections::BTreeSet};

use diesel::{dsl::IntoBoxed, prelude::*};
use grid_batch_core::DltStatus;
use grid_batch_withdrawals::{WithdrawalDetails, WithdrawalFilter, WithdrawalId, WithdrawalState};

use super::{
    details::{WithdrawalRecord, add_details, withdrawals_with_batch},
    heads::{Head, load_heads},
    rows::WithdrawalRow,
};
use crate::sql::{
    Connection, Store, StoreError, any_connection::MultiBackend, query::BatchRecord, rows::limit,
    schema::withdrawals,
};

/// The `list_state` of a withdrawal whose batch is open.
const OPEN: &str = "OPEN";

type Selection<'a> = IntoBoxed<'a, withdrawals::table, MultiBackend>;

pub(crate) fn withdrawals(
    store: &Store,
    filter: &WithdrawalFilter,
    before: Option<&WithdrawalId>,
    count: usize,
) -> Result<Vec<WithdrawalDetails>, StoreError> {
    store.pools.read()?.snapshot(|connection| {
        let before = match before {
            Some(id) => match find_seq(connection, id)? {
                Some(seq) => seq,
                None => return Ok(Vec::new()),
            },
            None => i64::MAX,
        };
        let page = Page { filter, before, count };
        let seqs = page.select(connection)?;
        let records = load_records(connection, seqs)?;
        add_details(connection, records)
    })
}

/// The withdrawals that a page shows: of those that the filter selects, the newest before `before`.
struct Page<'f> {
    filter: &'f WithdrawalFilter,
    before: i64,
    count: usize,
}

impl Page<'_> {
    /// The numbers of the withdrawals, the newest first. Each state is read from where the page starts
    /// until the page is full.
    fn select(&self, connection: &mut Connection) -> Result<Vec<i64>, StoreError> {
        let wants = |state| self.filter.states.is_empty() || self.filter.states.contains(&state);
        let mut seqs = Vec::new();
        if wants(WithdrawalState::Withdrawn) {
            seqs.extend(self.select_newest(connection, DltStatus::Committed.as_str(), &[])?);
        }
        if wants(WithdrawalState::Failed) {
            seqs.extend(self.select_newest(connection, DltStatus::Invalid.as_str(), &[])?);
        }
        let open = WithdrawalState::ALL.into_iter().filter(|state| !state.has_ended());
        let (wanted, others): (BTreeSet<_>, BTreeSet<_>) = open.partition(|state| wants(*state));
        if others.is_empty() {
            seqs.extend(self.select_newest(connection, OPEN, &[])?);
        } else if !wanted.is_empty() {
            seqs.extend(self.select_open(connection, &wanted)?);
        }
        seqs.sort_unstable_by_key(|seq| Reverse(*seq));
        seqs.truncate(self.count);
        Ok(seqs)
    }

    /// Open withdrawals in these states. All that are not scheduled are in a lane or held, and there are
    /// few of them, so they are selected, or left out, one by one.
    fn select_open(
        &self,
        connection: &mut Connection,
        wanted: &BTreeSet<WithdrawalState>,
    ) -> Result<Vec<i64>, StoreError> {
        let (in_wanted, in_others): (Vec<Head>, Vec<Head>) =
            load_heads(connection)?.into_iter().partition(|head| wanted.contains(&head.state));
        let batch_seqs = |heads: Vec<Head>| -> Vec<i64> {
            heads.into_iter().map(|head| head.batch_seq).collect()
        };
        if wanted.contains(&WithdrawalState::Scheduled) {
            return self.select_newest(connection, OPEN, &batch_seqs(in_others));
        }
        let query = self
            .selection()
            .filter(withdrawals::list_state.eq(OPEN))
            .filter(withdrawals::batch_seq.eq_any(batch_seqs(in_wanted)))
            .select(withdrawals::seq);
        connection.load_query("withdrawals_of_heads", query)
    }

    /// The newest withdrawals with this `list_state`, except those with these batches.
    fn select_newest(
        &self,
        connection: &mut Connection,
        list_state: &str,
        except: &[i64],
    ) -> Result<Vec<i64>, StoreError> {
        let mut query = self
            .selection()
            .filter(withdrawals::list_state.eq(list_state))
            .order_by(withdrawals::seq.desc())
            .limit(limit(self.count));
        if !except.is_empty() {
            query = query.filter(withdrawals::batch_seq.ne_all(except));
        }
        connection.load_query("newest_withdrawals", query.select(withdrawals::seq))
    }

    /// What the filter selects, without its states.
    fn selection(&self) -> Selection<'_> {
        let filter = self.filter;
        let mut selected = withdrawals::table.filter(withdrawals::seq.lt(self.before)).into_boxed();
        if let Some(pool) = &filter.pool {
            selected = selected.filter(withdrawals::pool.eq(pool));
        }
        if let Some(beneficiary) = &filter.beneficiary {
            selected = selected.filter(withdrawals::beneficiary.eq(beneficiary));
        }
        if let Some(service_id) = &filter.service_id {
            selected = selected.filter(withdrawals::service_id.eq(service_id.as_str()));
        }
        if let Some(reward_id) = &filter.reward_id {
            selected = selected.filter(withdrawals::reward_id.eq(&reward_id.as_bytes()[..]));
        }
        if let Some(key) = &filter.idempotency_key {
            selected = selected.filter(withdrawals::idempotency_key.eq(key));
        }
        selected
    }
}

fn find_seq(connection: &mut Connection, id: &WithdrawalId) -> Result<Option<i64>, StoreError> {
    let query = withdrawals::table
        .filter(withdrawals::withdrawal_id.eq(&id.as_bytes()[..]))
        .select(withdrawals::seq);
    let found: Vec<i64> = connection.load_query("withdrawal_seq", query)?;
    Ok(found.into_iter().next())
}

/// Reads withdrawals with their batches, the newest first.
fn load_records(
    connection: &mut Connection,
    seqs: Vec<i64>,
) -> Result<Vec<WithdrawalRecord>, StoreError> {
    if seqs.is_empty() {
        return Ok(Vec::new());
    }
    let query = withdrawals_with_batch().filter(withdrawals::seq.eq_any(seqs)).select(<(
        WithdrawalRow,
        BatchRecord,
    )>::as_select(
    ));
    let mut records: Vec<WithdrawalRecord> = connection.load_query("withdrawals", query)?;
    records.sort_unstable_by_key(|(withdrawal, _)| Reverse(withdrawal.withdrawal_seq));
    Ok(records)
}
