use grid_batch_core::ServiceId;

use crate::sql::Dialect;

/// The services that a statement considers.
#[derive(Clone, Copy)]
pub(super) enum Scope<'a> {
    All,
    /// These, in the group of rows `x` of the statement.
    Named(&'a [ServiceId]),
}

impl Scope<'_> {
    /// A query that locks the claims whose claimant meets a condition, and skips locked ones.
    ///
    /// The planner does not join a subquery with a lock, so claims are looked up by their claimant
    /// however many it has. `coalesce` makes the planner look the claims of named services up by
    /// service.
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
