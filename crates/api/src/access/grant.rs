use std::{collections::BTreeSet, sync::Arc};

use grid_batch_core::ServiceId;
use grid_batch_core::tokens::AccessScope;
use grid_batch_support::ServicePattern;

/// Scopes, and the services for which they hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Grant {
    pub(super) scopes: BTreeSet<AccessScope>,
    pub(super) services: Services,
}

/// Which services something is allowed for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Services {
    All,
    /// Those of these forms.
    Some(Arc<[ServicePattern]>),
}

impl Services {
    /// The services of these forms. `*` alone means all, those without a batch too.
    pub(super) fn of(patterns: impl IntoIterator<Item = ServicePattern>) -> Self {
        let patterns: Vec<ServicePattern> = patterns.into_iter().collect();
        if patterns.iter().any(|pattern| pattern.to_string() == "*") {
            Self::All
        } else {
            Self::Some(patterns.into())
        }
    }

    pub(super) fn has(&self, service_id: &ServiceId) -> bool {
        match self {
            Self::All => true,
            Self::Some(patterns) => patterns.iter().any(|pattern| pattern.matches(service_id)),
        }
    }
}

/// The services for which grants allow a scope. `None`: no grant has it.
pub(super) fn services_of(grants: &[Grant], scope: AccessScope) -> Option<Services> {
    let of_scope: Vec<&Services> = grants
        .iter()
        .filter(|grant| grant.scopes.contains(&scope))
        .map(|grant| &grant.services)
        .collect();
    match of_scope.as_slice() {
        [] => None,
        [one] => Some((*one).clone()),
        several if several.contains(&&Services::All) => Some(Services::All),
        several => {
            let patterns = several.iter().flat_map(|services| match services {
                Services::Some(patterns) => patterns.to_vec(),
                Services::All => Vec::new(),
            });
            Some(Services::Some(patterns.collect()))
        }
    }
}
