use std::collections::BTreeMap;

use grid_batch_core::ServiceId;
use grid_batch_core::claims::InstanceId;

use crate::sql::{
    Connection, Dialect, Statement, Store, StoreError,
    rows::{ServiceRow, limit, no_lane, service_id, service_rows, with_submitter},
};

/// The services that may be taken from one claimant.
enum ClaimSource {
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
    /// Whether it may be taken even if a batch is with a submitter.
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
        // Services that cannot be read are never taken, and must not keep others from being taken.
        let rows = left + store.unreadable.count();
        let statement = lock_takeable_statement(connection.dialect(), &source, scope, rows);
        let rows: Vec<ServiceRow> = connection.load(&statement)?;
        let readable = rows.iter().filter_map(|row| store.unreadable.read(row.name()));
        takeable.extend(readable.take(left).map(|service_id| {
            let even_if_busy = !matches!(source, ClaimSource::IdleExpired(_));
            TakeableService { service_id, even_if_busy }
        }));
    }
    leave_locked_lanes(connection, takeable)
}

/// Leaves out services with a locked lane other than the first, and locks these lanes of the other services.
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
        let rows: Vec<ServiceRow> = connection.load_rows(sql, service_rows(services))?;
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
fn find_sources(connection: &mut Connection) -> Result<Vec<ClaimSource>, StoreError> {
    let dialect = connection.dialect();
    let (clock, lock) = (dialect.clock(), dialect.locking("for share of i skip locked"));
    let statement = Statement::new(format!(
        "-- find_expired_instances
         select i.instance_id, i.expiry_2 <= {clock} as fully_expired from instances i
         where i.expiry_1 <= {clock} {lock}"
    ));
    let expired: Vec<(String, bool)> = connection.load_tuples(&statement)?;
    let source = |(instance, fully_expired): (String, bool)| {
        if fully_expired {
            ClaimSource::FullyExpired(instance)
        } else {
            ClaimSource::IdleExpired(instance)
        }
    };
    Ok([ClaimSource::Unclaimed].into_iter().chain(expired.into_iter().map(source)).collect())
}

fn lock_takeable_statement<'a>(
    dialect: Dialect,
    source: &'a ClaimSource,
    scope: Scope<'a>,
    count: usize,
) -> Statement<'a> {
    let name = match (source, scope) {
        (ClaimSource::Unclaimed, Scope::All) => "-- lock_unclaimed",
        (ClaimSource::Unclaimed, Scope::Named(_)) => "-- lock_unclaimed_named",
        (ClaimSource::IdleExpired(_), Scope::All) => "-- lock_idle_expired",
        (ClaimSource::IdleExpired(_), Scope::Named(_)) => "-- lock_idle_expired_named",
        (ClaimSource::FullyExpired(_), Scope::All) => "-- lock_fully_expired",
        (ClaimSource::FullyExpired(_), Scope::Named(_)) => "-- lock_fully_expired_named",
    };
    let claimant = match source {
        ClaimSource::Unclaimed => "is null",
        ClaimSource::IdleExpired(_) | ClaimSource::FullyExpired(_) => "= ?",
    };
    let claims = scope.locked_claims(dialect, claimant);
    let condition = match source {
        ClaimSource::IdleExpired(_) => format!("where {}", no_lane("f", &with_submitter("s"))),
        ClaimSource::Unclaimed | ClaimSource::FullyExpired(_) => String::new(),
    };
    // A takeover also changes the lanes, so a service with a locked lane is left for later.
    let lock = dialect.locking("for update of v, l skip locked");
    let mut statement = Statement::new(format!(
        "{name}
             select f.service_id
             from ({claims}) as f
             join services v on v.service_id = f.service_id
             join lanes l on l.service_id = v.service_id and l.lane = 0
             {condition}
             limit ? {lock}"
    ));
    if let ClaimSource::IdleExpired(claimant) | ClaimSource::FullyExpired(claimant) = source {
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
    let statement = Statement::new(format!(
        "-- find_takeable
         select c.service_id,
             case when i.expiry_1 > {clock} then c.claimant end as live_claimant
         from {{x}} join service_id_claims c on c.service_id = x.service_id
         left join instances i on i.instance_id = c.claimant
         where c.claimant is null or c.claimant <> ? or i.expiry_1 <= {clock}"
    ))
    .rows(service_rows(services))
    .text(instance.as_str());
    let rows: Vec<(String, Option<String>)> = store.pools.read()?.load_tuples(&statement)?;
    let mut found = FoundClaims::default();
    for (service, live_claimant) in rows {
        let services = match live_claimant {
            Some(claimant) => found.of_others.entry(claimant).or_default(),
            None => &mut found.takeable,
        };
        services.push(service_id(&service)?);
    }
    Ok(found)
}

/// The claims of services that the instance does not claim itself.
#[derive(Debug, Default)]
pub(super) struct FoundClaims {
    pub(super) takeable: Vec<ServiceId>,
    /// The services of other live instances, by instance.
    pub(super) of_others: BTreeMap<String, Vec<ServiceId>>,
}

/// The services that a statement considers.
#[derive(Clone, Copy)]
pub(super) enum Scope<'a> {
    All,
    /// These services, in the group of rows `x` of the statement.
    Named(&'a [ServiceId]),
}

impl Scope<'_> {
    /// A query that locks the claims whose claimant meets a condition, and skips locked ones.
    ///
    /// The planner does not flatten a subquery with a lock, so claims are looked up by their claimant, however many it
    /// has. `coalesce` makes the planner look up the claims of named services by service.
    pub(super) fn locked_claims(self, dialect: Dialect, claimant: &str) -> String {
        let lock = dialect.locking("for update of c skip locked");
        match self {
            Self::All => format!(
                "select c.service_id from service_id_claims c
                 where c.claimant {claimant} {lock}"
            ),
            Self::Named(_) => format!(
                "select c.service_id
                 from {{x}} join service_id_claims c on c.service_id = x.service_id
                 where coalesce(c.claimant, null) {claimant} {lock}"
            ),
        }
    }
}
