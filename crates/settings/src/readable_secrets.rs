use std::{
    collections::BTreeSet,
    fmt,
    path::{Path, PathBuf},
};

use grid_batch_support::is_open_to_others;
use log::warn;

use crate::{GivenValue, Origin, Setting, SettingValues};

/// A secret, or a database file, that other users of this machine can read.
#[derive(Debug, Clone)]
pub struct ReadableSecret {
    kind: Kind,
}

#[derive(Debug, Clone)]
enum Kind {
    File { file: PathBuf, what: &'static str },
    Flag { flag: String, setting: &'static Setting },
}

impl fmt::Display for ReadableSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            Kind::File { what, .. } => {
                write!(f, "other users can read {what}; restrict it with chmod 600")
            }
            Kind::Flag { flag, setting } => {
                let file = if setting.may_be_in_file() {
                    format!("--{flag}-file or ")
                } else {
                    String::new()
                };
                write!(
                    f,
                    "every user of this machine can read the flag in the list of processes; set {file}{}",
                    setting.variable()
                )
            }
        }
    }
}

impl ReadableSecret {
    /// The file or the flag.
    pub fn name(&self) -> String {
        match &self.kind {
            Kind::File { file, .. } => file.display().to_string(),
            Kind::Flag { flag, .. } => format!("--{flag}"),
        }
    }

    /// Logs a warning.
    pub fn warn(&self) {
        let name = self.name();
        match &self.kind {
            Kind::File { .. } => warn!(file = name.as_str(); "{self}"),
            Kind::Flag { .. } => warn!(flag = name.as_str(); "{self}"),
        }
    }
}

impl SettingValues {
    /// Each file with a secret, and the database file, that other users can read, and each secret that was given as a
    /// flag.
    pub fn readable_secrets(&self, database: Option<&Path>) -> Vec<ReadableSecret> {
        let mut found = Found::default();
        for given in self.table().iter().flat_map(|it| self.all_of(it)) {
            let is_secret = given.setting.redact(&given.text) != given.text;
            match &given.file {
                Some(file) if given.setting.may_hold_secret => {
                    found.add_file(file, "the file of a setting");
                }
                Some(_) => {}
                None if is_secret => found.add_origin(given),
                None => {}
            }
        }
        if let Some(file) = database {
            found.add_file(file, "the database file");
        }
        found.secrets
    }
}

#[derive(Default)]
struct Found {
    secrets: Vec<ReadableSecret>,
    files: BTreeSet<PathBuf>,
}

impl Found {
    fn add_origin(&mut self, given: &GivenValue) {
        match &given.origin {
            Origin::File { file, .. } => self.add_file(file, "the configuration file"),
            Origin::Flag(flag) => {
                let (flag, setting) = (flag.clone(), given.setting);
                let kind = Kind::Flag { flag, setting };
                self.secrets.push(ReadableSecret { kind });
            }
            Origin::Default | Origin::Variable(_) => {}
        }
    }

    fn add_file(&mut self, file: &Path, what: &'static str) {
        if is_open_to_others(file) && self.files.insert(file.to_owned()) {
            let kind = Kind::File { file: file.to_owned(), what };
            self.secrets.push(ReadableSecret { kind });
        }
    }
}
