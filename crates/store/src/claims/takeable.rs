use std::collections::BTreeMap;

use diesel::{
    QueryableByName,
    sql_types::{Bool, Nullable, Text},
};
use grid_batch_core::{InstanceId, ServiceId};

use super::scope::Scope;
use crate::sql::{
    Connection, Dialect, Statement, Store, StoreError,
    rows::{ServiceRow, limit, no_lane, service_rows, with_submitter},
};

/// The services that may be taken from one claimant.
enum Source {
    /// Services that no instance claims.
    Unclaimed,
    /// Services of an instance past its idle expiry, without a batch with a submitter.
    IdleExpired(String),
    /// All services of an instance past its full expiry.
    FullyExpired(String),
}

/// A locked service that may be taken.
pub(super) struct TakeableService {
    pub(super) service_id: ServiceId,
    /// Whether it may be taken with a batch with a submitter.
    pub(super) even_if_busy: bool,
}

/// Locks up to `count` services that may be taken, and skips those that are locked.
pub(super) fn lock_takeable(
    store: &Store,
    connection: &mut Connection,
    scope: Scope<'_>,
    count: usize,
) -> Result<Vec<TakeableService>, StoreError> {
    let mut takeable: Vec<TakeableService> = Vec::new();
    for source in find_sources(connection)? {
        let left = count - takeable.len();
        if left == 0 {
            break;
        }
        // Those that cannot be read are never taken, and do not keep others from being taken.
        let rows = left + store.unreadable.count();
        let statement = lock_takeable_statement(connection.dialect(), &source, scope, rows);
        let rows: Vec<ServiceRow> = connection.load(&statement)?;
        let readable = rows.iter().filter_map(|row| store.unreadable.read(row.name()));
        takeable.extend(readable.take(left).map(|service_id| {
            let even_if_busy = !matches!(source, Source::IdleExpired(_));
            TakeableService { service_id, even_if_busy }
        }));
    }
    leave_locked_lanes(connection, takeable)
}

/// Leaves out the services with a locked lane other than the first, and locks these lanes of the
/// others.
fn leave_locked_lanes(
    connection: &mut Connection,
    mut takeable: Vec<TakeableService>,
) -> Result<Vec<TakeableService>, StoreError> {
    let dialect = connection.dialect();
    if !dialect.locks_rows() {
        return Ok(takeable);
    }
    let lock = dialect.locking("for update of l skip locked");
    let select = "select l.service_id from {x} join lanes l on l.service_id = x.service_id
             where l.lane > 0";
    let mut count = |sql: String| {
        let services = takeable.iter().map(|service| &service.service_id);
        let statement = Statement::new(dialect, sql).rows(service_rows(services));
        let rows: Vec<ServiceRow> = connection.load(&statement)?;
        let mut counts: BTreeMap<ServiceId, usize> = BTreeMap::new();
        for row in rows {
            *counts.entry(row.read()?).or_default() += 1;
        }
        Ok::<_, StoreError>(counts)
    };
    let all = count(format!("-- find_further_lanes\n {select}"))?;
    if all.is_empty() {
        return Ok(takeable);
    }
    let free = count(format!("-- lock_further_lanes\n {select} {lock}"))?;
    takeable.retain(|service| all.get(&service.service_id) == free.get(&service.service_id));
    Ok(takeable)
}

/// Finds the claimants whose services may be taken. Expired instances are locked, so that they
/// cannot renew their lease during the takeover.
fn find_sources(connection: &mut Connection) -> Result<Vec<Source>, StoreError> {
    let dialect = connection.dialect();
    let (clock, lock) = (dialect.clock(), dialect.locking("for share of i skip locked"));
    let statement = Statement::new(
        dialect,
        format!(
            "-- find_expired_instances
             select i.instance_id, i.expiry_2 <= {clock} as fully_expired from instances i
             where i.expiry_1 <= {clock} {lock}"
        ),
    );
    let expired: Vec<ExpiredRow> = connection.load(&statement)?;
    let source = |row: ExpiredRow| match row.fully_expired {
        true => Source::FullyExpired(row.instance_id),
        false => Source::IdleExpired(row.instance_id),
    };
    Ok([Source::Unclaimed].into_iter().chain(expired.into_iter().map(source)).collect())
}

fn lock_takeable_statement<'a>(
    dialect: Dialect,
    source: &'a Source,
    scope: Scope<'a>,
    count: usize,
) -> Statement<'a> {
    let name = match (source, scope) {
        (Source::Unclaimed, Scope::All) => "-- lock_unclaimed",
        (Source::Unclaimed, Scope::Named(_)) => "-- lock_unclaimed_named",
        (Source::IdleExpired(_), Scope::All) => "-- lock_idle_expired",
        (Source::IdleExpired(_), Scope::Named(_)) => "-- lock_idle_expired_named",
        (Source::FullyExpired(_), Scope::All) => "-- lock_fully_expired",
        (Source::FullyExpired(_), Scope::Named(_)) => "-- lock_fully_expired_named",
    };
    let claimant = match source {
        Source::Unclaimed => "is null",
        Source::IdleExpired(_) | Source::FullyExpired(_) => "= ?",
    };
    let claims = scope.locked_claims(dialect, claimant);
    let condition = match source {
        Source::IdleExpired(_) => format!("where {}", no_lane("f", &with_submitter("s"))),
        Source::Unclaimed | Source::FullyExpired(_) => String::new(),
    };
    // A takeover changes the lanes, too. A service with a locked lane is left for later.
    let lock = dialect.locking("for update of v, l skip locked");
    let mut statement = Statement::new(
        dialect,
        format!(
            "{name}
             select f.service_id
             from ({claims}) as f
             join services v on v.service_id = f.service_id
             join lanes l on l.service_id = v.service_id and l.lane = 0
             {condition}
             limit ? {lock}"
        ),
    );
    if let Source::IdleExpired(claimant) | Source::FullyExpired(claimant) = source {
        statement = statement.text(claimant);
    }
    statement = statement.long(limit(count));
    match scope {
        Scope::All => statement,
        Scope::Named(services) => statement.rows(service_rows(services)),
    }
}

/// Finds those of these services that have no live claimant, and the claims of other live instances.
pub(super) fn find_takeable(
    store: &Store,
    instance: &InstanceId,
    services: &[ServiceId],
) -> Result<FoundClaims, StoreError> {
    let clock = store.dialect().clock();
    let statement = store
        .statement(format!(
            "-- find_takeable
             select c.service_id,
                 case when i.expiry_1 > {clock} then c.claimant end as live_claimant
             from {{x}} join service_id_claims c on c.service_id = x.service_id
             left join instances i on i.instance_id = c.claimant
             where c.claimant is null or c.claimant <> ? or i.expiry_1 <= {clock}"
        ))
        .rows(service_rows(services))
        .text(instance.as_str());
    let rows: Vec<FoundClaimRow> = store.pools.read()?.load(&statement)?;
    let mut found = FoundClaims::default();
    for FoundClaimRow { service, live_claimant } in rows {
        match live_claimant {
            Some(claimant) => found.of_others.entry(claimant).or_default().push(service.read()?),
            None => found.takeable.push(service.read()?),
        }
    }
    Ok(found)
}

/// The claims of services that an instance does not have itself.
#[derive(Debug, Default)]
pub(super) struct FoundClaims {
    pub(super) takeable: Vec<ServiceId>,
    /// By instance.
    pub(super) of_others: BTreeMap<String, Vec<ServiceId>>,
}

#[derive(QueryableByName)]
struct FoundClaimRow {
    #[diesel(embed)]
    service: ServiceRow,
    #[diesel(sql_type = Nullable<Text>)]
    live_claimant: Option<String>,
}

#[derive(QueryableByName)]
struct ExpiredRow {
    #[diesel(sql_type = Text)]
    instance_id: String,
    #[diesel(sql_type = Bool)]
    fully_expired: bool,
}
