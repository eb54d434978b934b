use grid_batch_core::BatchResult;
use grid_batch_core::ledger::{LedgerIdentity, RecordedLedger};
use grid_batch_support::redact_url;

/// The ledger of a database, and the ledgers of the configured nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LedgerInspection {
    /// The ledger that the database is bound to, if it is bound.
    pub recorded: Option<RecordedLedger>,
    /// The nodes, in the order of the settings.
    pub nodes: Vec<NodeIdentity>,
}

/// The ledger of one node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeIdentity {
    /// Its URL, without secrets.
    pub url: String,
    /// Its ledger, or why it does not report it.
    pub identity: Result<LedgerIdentity, String>,
}

/// Whether the database can be bound to the ledger of the nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Adoption<'a> {
    /// It is already bound to it.
    Unchanged,
    /// It is not certain which ledger the nodes belong to.
    Refused(&'static str),
    /// It can be bound to this one.
    Adopt(&'a LedgerIdentity),
}

impl NodeIdentity {
    /// The identity of a node's ledger: `configured`, with the id that the node has answered.
    pub fn new(url: &str, configured: &LedgerIdentity, answer: BatchResult<String>) -> Self {
        let identity = answer
            .map(|id| LedgerIdentity { id, ..configured.clone() })
            .map_err(|error| error.to_string());
        Self { url: redact_url(url), identity }
    }
}

impl Adoption<'_> {
    /// Why the adoption is refused, if it is.
    pub fn refused(self) -> Option<&'static str> {
        match self {
            Self::Refused(reason) => Some(reason),
            Self::Unchanged | Self::Adopt(_) => None,
        }
    }
}

impl LedgerInspection {
    /// The ledger of all nodes, if all have reported it and agree. This is the most detailed report.
    pub fn actual(&self) -> Option<&LedgerIdentity> {
        let reported: Result<Vec<&LedgerIdentity>, _> =
            self.nodes.iter().map(|node| node.identity.as_ref()).collect();
        let reported = reported.ok()?;
        let most = reported.iter().copied().max_by_key(|identity| identity.id.len())?;
        reported.iter().all(|identity| identity.agrees_with(most)).then_some(most)
    }

    /// Whether all nodes belong to the ledger of the database, if it is bound to one.
    pub fn is_certain(&self) -> bool {
        let recorded = self.recorded.as_ref().map(|recorded| &recorded.identity);
        self.actual().is_some_and(|actual| recorded.is_none_or(|recorded| actual == recorded))
    }

    /// What binding the database to the ledger of the nodes would change.
    pub fn adoption(&self) -> Adoption<'_> {
        let Some(actual) = self.actual() else {
            return Adoption::Refused("every node must answer, and all must belong to one ledger");
        };
        match &self.recorded {
            Some(recorded) if recorded.identity.agrees_with(actual) => Adoption::Unchanged,
            _ => Adoption::Adopt(actual),
        }
    }
}

#[cfg(test)]
mod tests {
    use grid_batch_core::Timestamp;

    use super::*;

    fn ledger(id: &str) -> LedgerIdentity {
        LedgerIdentity { id: id.to_owned(), ..LedgerIdentity::new("evm") }
    }

    fn inspection(recorded: Option<&str>, nodes: &[Result<&str, &str>]) -> LedgerInspection {
        let recorded = recorded
            .map(|id| RecordedLedger { identity: ledger(id), recorded_at: Timestamp::default() });
        let node = |identity: &Result<&str, &str>| NodeIdentity {
            url: "http://h".to_owned(),
            identity: identity.map(ledger).map_err(str::to_owned),
        };
        LedgerInspection { recorded, nodes: nodes.iter().map(node).collect() }
    }

    #[test]
    fn all_nodes_must_report_the_same() {
        let actual = |nodes: &[Result<&str, &str>]| {
            inspection(None, nodes).actual().map(|identity| identity.id.clone())
        };
        assert_eq!(actual(&[Ok("a"), Ok("a")]).as_deref(), Some("a"));
        assert_eq!(actual(&[Ok("a"), Ok("b")]), None);
        assert_eq!(actual(&[Ok("a"), Err("down")]), None);
        assert_eq!(actual(&[]), None);
        let less = [Ok("chain 1"), Ok("chain 1, genesis block 2")];
        assert_eq!(actual(&less).as_deref(), Some("chain 1, genesis block 2"));
    }

    #[test]
    fn nodes_of_the_recorded_ledger_are_certain() {
        let is_certain = |recorded, nodes: &[_]| inspection(recorded, nodes).is_certain();
        assert!(is_certain(Some("a"), &[Ok("a")]));
        assert!(is_certain(None, &[Ok("a")]));
        assert!(!is_certain(Some("b"), &[Ok("a")]));
        assert!(!is_certain(Some("a"), &[Ok("a"), Err("down")]));
    }

    #[test]
    fn only_a_certain_ledger_is_adopted() {
        let uncertain =
            Adoption::Refused("every node must answer, and all must belong to one ledger");
        for (recorded, nodes, expected) in [
            (Some("a"), [Ok("a"), Ok("a")], Adoption::Unchanged),
            (Some("b"), [Ok("a"), Ok("a")], Adoption::Adopt(&ledger("a"))),
            (None, [Ok("a"), Ok("a")], Adoption::Adopt(&ledger("a"))),
            (Some("a"), [Ok("a"), Ok("b")], uncertain),
            (Some("a"), [Ok("a"), Err("refused")], uncertain),
        ] {
            let inspection = inspection(recorded, &nodes);
            assert_eq!(inspection.adoption(), expected, "{inspection:?}");
        }
    }
}
