use grid_batch_core::ServiceId;
use grid_batch_withdrawals::{WithdrawalDetails, WithdrawalFilter, WithdrawalId};

use super::details::stories;
use crate::sql::{Statement, Store, StoreError, rows::limit};

impl Store {
    /// One page of withdrawals, the newest first: from the one before `before`. An id that is not
    /// there has nothing before it.
    ///
    /// A page costs what it shows, and what it passes over where more is asked for than one pool,
    /// service, reward or beneficiary.
    pub fn withdrawals(
        &self,
        filter: &WithdrawalFilter,
        before: Option<&WithdrawalId>,
        count: usize,
    ) -> Result<Vec<WithdrawalDetails>, StoreError> {
        let statement = self.page(filter, before, count);
        self.pools.read()?.snapshot(|connection| self.read_stories(connection, &statement))
    }

    fn page<'a>(
        &self,
        filter: &'a WithdrawalFilter,
        before: Option<&'a WithdrawalId>,
        count: usize,
    ) -> Statement<'a> {
        let ended = match filter.ended {
            None => "",
            Some(true) => " and b.ended_at is not null",
            Some(false) => " and b.ended_at is null",
        };
        let mut statement = self.statement(stories("-- withdrawals")).and(" where true").and(ended);
        let texts = [
            ("pool", filter.pool.as_deref()),
            ("beneficiary", filter.beneficiary.as_deref()),
            ("service_id", filter.service_id.as_ref().map(ServiceId::as_str)),
        ];
        for (column, text) in texts {
            if let Some(text) = text {
                statement = statement.and(&format!(" and w.{column} = ?")).text(text);
            }
        }
        if let Some(reward) = &filter.reward_id {
            statement = statement.and(" and w.reward_id = ?").bytes(reward.as_bytes());
        }
        if let Some(before) = before {
            let older = " and w.seq < (select o.seq from withdrawals o where o.withdrawal_id = ?)";
            statement = statement.and(older).bytes(before.as_bytes());
        }
        statement.and(" order by w.seq desc limit ?").long(limit(count))
    }
}
