use grid_batch_core::ledger::{LedgerIdentity, RecordedLedger};
use thiserror::Error;

/// The database is bound to another ledger than the one that the server would use.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum LedgerMismatchError {
    /// A node belongs to another ledger than the database.
    #[error(
        "the node {node} belongs to another ledger ({actual}) than the database ({}); correct \
         ledger.urls or database, or run `grid-batch ledger adopt --reason TEXT`", recorded.identity
    )]
    Node {
        /// The URL of the node, without secrets.
        node: String,
        /// The ledger of the node.
        actual: Box<LedgerIdentity>,
        /// The ledger of the database.
        recorded: Box<RecordedLedger>,
    },
    /// A node belongs to another ledger than the one that the settings identify.
    #[error(
        "the node {node} belongs to another ledger ({actual}) than the settings name ({configured}); \
         correct ledger.urls or evm.chain_id"
    )]
    NodeOfSettings {
        /// The URL of the node, without secrets.
        node: String,
        /// The ledger of the node.
        actual: Box<LedgerIdentity>,
        /// The ledger of the settings.
        configured: Box<LedgerIdentity>,
    },
    /// The database was bound to its ledger before the ledger had a name.
    #[error(
        "the database is bound to a {} ledger without a name, and ledger.name is {:?}: if it is this ledger, run \
         `grid-batch ledger adopt --reason TEXT` once with these settings; otherwise correct database",
        configured.kind, configured.name
    )]
    Unnamed {
        /// The ledger of the settings.
        configured: Box<LedgerIdentity>,
    },
    /// The settings name another kind of ledger, or another name.
    #[error(
        "the settings are for another ledger ({configured}) than the database ({}); correct \
         ledger.kind, ledger.name or database, or run `grid-batch ledger adopt --reason TEXT`", recorded.identity
    )]
    Settings {
        /// The ledger of the settings.
        configured: Box<LedgerIdentity>,
        /// The ledger of the database.
        recorded: Box<RecordedLedger>,
    },
}

impl LedgerMismatchError {
    /// Fails if the recorded ledger has another kind or name than the one in the settings. No node needs to be asked
    /// for that.
    pub fn of_settings(configured: &LedgerIdentity, recorded: &RecordedLedger) -> Result<(), Self> {
        let LedgerIdentity { kind, name, .. } = &recorded.identity;
        if *kind == configured.kind && *name == configured.name {
            return Ok(());
        }
        let (configured, recorded) = (Box::new(configured.clone()), Box::new(recorded.clone()));
        if recorded.identity.kind == configured.kind && recorded.identity.name.is_empty() {
            return Err(Self::Unnamed { configured });
        }
        Err(Self::Settings { configured, recorded })
    }
}

#[cfg(test)]
mod tests {
    use grid_batch_core::Timestamp;

    use super::*;

    fn recorded(kind: &str, id: &str, name: &str) -> RecordedLedger {
        let [kind, id, name] = [kind, id, name].map(str::to_owned);
        let identity = LedgerIdentity { kind, id, name };
        RecordedLedger { identity, recorded_at: Timestamp::default() }
    }

    #[test]
    fn kind_and_name_must_be_those_of_the_settings() {
        let named = |name: &str| LedgerIdentity {
            name: name.to_owned(),
            ..LedgerIdentity::new("sawtooth")
        };
        let recorded = recorded("sawtooth", "genesis block aa", "one");
        assert_eq!(LedgerMismatchError::of_settings(&named("one"), &recorded), Ok(()));
        let error = LedgerMismatchError::of_settings(&named(""), &recorded).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the settings are for another ledger (sawtooth) than the database (sawtooth, genesis \
             block aa, named \"one\"); correct ledger.kind, ledger.name or database, or run \
             `grid-batch ledger adopt --reason TEXT`"
        );
        let scabbard = LedgerIdentity::new("scabbard");
        assert!(LedgerMismatchError::of_settings(&scabbard, &recorded).is_err());
    }
}
