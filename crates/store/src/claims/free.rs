use diesel::{
    QueryableByName,
    sql_types::{Bool, Text},
};
use grid_batch_core::ServiceId;

use super::{ClaimStore, which::Claims};
use crate::{
    StoreError,
    connection::Connection,
    recover::{no_lane, with_submitter},
    rows::{ServiceRow, limit, names},
    statement::Statement,
};

/// Whose services may be taken.
struct Free {
    /// Those of this instance; `None`: those that nobody claims.
    claimant: Option<String>,
    /// Those of which something is being sent, too.
    sending_too: bool,
}

/// A service that may be taken, and is locked.
pub(super) struct Found {
    pub(super) service_id: ServiceId,
    /// Even where something of it is being sent.
    pub(super) sending_too: bool,
}

impl ClaimStore {
    /// Locks up to `count` services that may be taken, among these or among all; what others have
    /// locked is left out.
    pub(super) fn lock_free(
        &self,
        connection: &mut Connection,
        among: Option<&[ServiceId]>,
        count: usize,
    ) -> Result<Vec<Found>, StoreError> {
        let mut found: Vec<Found> = Vec::new();
        for free in self.find_free(connection)? {
            let left = count - found.len();
            if left == 0 {
                break;
            }
            let rows: Vec<ServiceRow> = connection.load(&self.lock_free_of(&free, among, left))?;
            for row in rows.iter().take(left) {
                found.push(Found { service_id: row.read()?, sending_too: free.sending_too });
            }
        }
        Ok(found)
    }

    /// Finds out whose services may be taken. Instances whose expiries have passed are locked: they
    /// cannot be renewed while they are robbed.
    fn find_free(&self, connection: &mut Connection) -> Result<Vec<Free>, StoreError> {
        let dialect = self.store.pools.dialect();
        let (clock, lock) = (dialect.clock(), dialect.locking("for share of i skip locked"));
        let lapsed = self.store.statement(format!(
            "-- find_lapsed
             select i.instance_id, i.expiry_2 <= {clock} as dead from instances i
             where i.expiry_1 <= {clock} {lock}"
        ));
        let lapsed: Vec<LapsedRow> = connection.load(&lapsed)?;
        let mut free = vec![Free { claimant: None, sending_too: true }];
        free.extend(
            lapsed
                .into_iter()
                .map(|row| Free { claimant: Some(row.instance_id), sending_too: row.dead }),
        );
        Ok(free)
    }

    fn lock_free_of<'a>(
        &self,
        free: &'a Free,
        among: Option<&'a [ServiceId]>,
        count: usize,
    ) -> Statement<'a> {
        let dialect = self.store.pools.dialect();
        let (suffix, claims) = match among {
            None => ("", Claims::All),
            Some(_) => ("_of", Claims::Named),
        };
        let (name, claimant) = match free {
            Free { claimant: None, .. } => ("unclaimed", "is null"),
            Free { sending_too: true, .. } => ("dead", "= ?"),
            Free { sending_too: false, .. } => ("idle", "= ?"),
        };
        let claims = claims.locked(dialect, claimant);
        let condition = match free.sending_too {
            true => String::new(),
            false => format!("where {}", no_lane("f", &with_submitter("s"))),
        };
        let lock = dialect.locking("for update of v skip locked");
        let mut statement = self.store.statement(format!(
            "-- lock_{name}{suffix}
             select f.service_id
             from ({claims}) as f
             join services v on v.service_id = f.service_id
             {condition}
             limit ? {lock}"
        ));
        if let Some(claimant) = &free.claimant {
            statement = statement.text(claimant);
        }
        statement = statement.long(limit(count));
        match among {
            None => statement,
            Some(services) => statement.rows(names(services)),
        }
    }

    /// Those of these services that nobody may be working on: mostly none, which costs no more than
    /// this look.
    pub(super) fn perhaps_free(
        &self,
        services: &[ServiceId],
    ) -> Result<Vec<ServiceId>, StoreError> {
        let clock = self.store.pools.dialect().clock();
        let statement = self
            .store
            .statement(format!(
                "-- perhaps_free
                 select c.service_id
                 from {{x}} join service_id_claims c on c.service_id = x.service_id
                 left join instances i on i.instance_id = c.claimant
                 where c.claimant is null or i.expiry_1 <= {clock}"
            ))
            .rows(names(services));
        let rows: Vec<ServiceRow> = self.store.pools.read()?.load(&statement)?;
        rows.iter().map(ServiceRow::read).collect()
    }
}

#[derive(QueryableByName)]
struct LapsedRow {
    #[diesel(sql_type = Text)]
    instance_id: String,
    #[diesel(sql_type = Bool)]
    dead: bool,
}
