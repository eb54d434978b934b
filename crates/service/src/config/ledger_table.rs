use std::{
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
};

use serde::de::DeserializeOwned;
use toml::{
    Spanned,
    de::{DeTable, DeValue, ValueDeserializer},
};

use super::{ConfigError, Origin};

/// The sections `[ledger.NAME]` of the file: the settings of ledgers that a program has registered.
#[derive(Clone, Default)]
pub(crate) struct LedgerTables(Option<Arc<Source>>);

struct Source {
    file: PathBuf,
    text: String,
    /// The names of the sections, and their lines.
    sections: Vec<(String, usize)>,
}

impl LedgerTables {
    /// The sections of this file.
    pub(super) fn of_file(file: &Path, text: &str, sections: Vec<(String, usize)>) -> Self {
        if sections.is_empty() {
            return Self::default();
        }
        let (file, text) = (file.to_owned(), text.to_owned());
        Self(Some(Arc::new(Source { file, text, sections })))
    }

    /// An error if a section has none of these names.
    pub(super) fn check_names<'a>(
        &self,
        names: impl Iterator<Item = &'a str> + Clone,
    ) -> Result<(), ConfigError> {
        let Some(source) = &self.0 else { return Ok(()) };
        for (section, line) in &source.sections {
            if !names.clone().any(|name| name == section) {
                return Err(ConfigError::UnknownSetting {
                    origin: source.origin(*line),
                    name: format!("ledger.{section}"),
                    nearest: None,
                });
            }
        }
        Ok(())
    }

    /// The settings of this ledger. Without a section, all of them have their defaults.
    pub(crate) fn read<T: DeserializeOwned>(&self, ledger: &str) -> Result<T, ConfigError> {
        let Some(section) = self.0.as_ref().and_then(|source| source.section(ledger)) else {
            let missing = |error: toml::de::Error| ConfigError::LedgerSettings {
                origin: Origin::Default,
                section: format!("ledger.{ledger}"),
                message: error.message().to_owned(),
            };
            return toml::from_str("").map_err(missing);
        };
        let (source, value) = section;
        let start = value.span().start;
        T::deserialize(ValueDeserializer::from(value)).map_err(|error| {
            let position = error.span().map_or(start, |span| span.start);
            ConfigError::LedgerSettings {
                origin: source.origin(line_at(&source.text, position)),
                section: format!("ledger.{ledger}"),
                message: error.message().to_owned(),
            }
        })
    }
}

impl Source {
    fn origin(&self, line: usize) -> Origin {
        Origin::File { file: self.file.clone(), line }
    }

    fn section(&self, ledger: &str) -> Option<(&Self, Spanned<DeValue<'_>>)> {
        // The file was parsed before.
        let table = DeTable::parse(&self.text).ok()?.into_inner();
        let of_ledgers = table.get("ledger")?.get_ref().get(ledger)?;
        Some((self, of_ledgers.clone()))
    }
}

/// The line of this position, counted from 1.
pub(super) fn line_at(text: &str, position: usize) -> usize {
    text.as_bytes().iter().take(position).filter(|byte| **byte == b'\n').count() + 1
}

/// The text may hold secrets.
impl fmt::Debug for LedgerTables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sections = self.0.iter().flat_map(|source| &source.sections).map(|(name, _)| name);
        f.debug_list().entries(sections).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Settings {
        #[serde(default = "ten")]
        margin: u32,
        account: String,
    }

    fn ten() -> u32 {
        10
    }

    fn tables(text: &str) -> LedgerTables {
        LedgerTables::of_file(Path::new("a.toml"), text, vec![("mine".to_owned(), 2)])
    }

    fn error(text: &str) -> String {
        tables(text).read::<Settings>("mine").unwrap_err().to_string()
    }

    #[test]
    fn section_is_read_as_the_settings_of_its_ledger() {
        let read = tables("\n[ledger.mine]\naccount = \"a\"\n").read("mine");
        assert_eq!(read, Ok(Settings { margin: 10, account: "a".to_owned() }));
    }

    #[test]
    fn errors_name_the_line_and_the_setting() {
        let message = error("\n[ledger.mine]\naccount = \"a\"\nmargins = 3\n");
        assert!(message.starts_with("line 4 of a.toml: [ledger.mine]: unknown field"), "{message}");
        let message = error("\n[ledger.mine]\naccount = \"a\"\nmargin = \"x\"\n");
        assert!(message.starts_with("line 4 of a.toml") && message.contains("u32"), "{message}");
        let message = error("\n[ledger.mine]\n");
        assert!(message.contains("[ledger.mine]: missing field `account`"), "{message}");
        let message = LedgerTables::default().read::<Settings>("mine").unwrap_err().to_string();
        assert!(message.contains("[ledger.mine]: missing field `account`"), "{message}");
    }

    #[test]
    fn section_of_no_ledger_is_refused() {
        let tables = tables("\n[ledger.mine]\n");
        assert_eq!(tables.check_names(["mine", "other"].into_iter()), Ok(()));
        let message = tables.check_names(["other"].into_iter()).unwrap_err().to_string();
        assert!(message.contains("line 2 of a.toml: there is no setting ledger.mine"), "{message}");
    }
}
