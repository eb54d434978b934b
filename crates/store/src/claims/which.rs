use crate::dialect::Dialect;

/// Which rows of `service_id_claims` are locked.
#[derive(Clone, Copy)]
pub(super) enum Claims {
    /// Any.
    All,
    /// Those of the services in the group of rows `x`.
    Named,
}

impl Claims {
    /// The query that locks those whose claimant is as given, leaving out what others have locked.
    ///
    /// A query of its own is not joined by the planner: so the claims are looked up by their claimant,
    /// however many it believes that one to have. Those of named services are looked up by service,
    /// which `coalesce` sees to.
    pub(super) fn locked(self, dialect: Dialect, claimant: &str) -> String {
        let lock = dialect.locking("for update of c skip locked");
        match self {
            Self::All => format!(
                "select c.service_id from service_id_claims c
                 where c.claimant {claimant} {lock}"
            ),
            Self::Named => format!(
                "select c.service_id
                 from {{x}} join service_id_claims c on c.service_id = x.service_id
                 where coalesce(c.claimant, null) {claimant} {lock}"
            ),
        }
    }
}
