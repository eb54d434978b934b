//! Warnings about secrets that other users can read, and about old names.

use std::{
    collections::BTreeSet,
    fmt,
    path::{Path, PathBuf},
};

use grid_batch_settings::{GivenValue, Origin, Setting};
use log::warn;

use super::Config;
use crate::private_file::is_open_to_others;

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

    fn warn(&self) {
        let name = self.name();
        match &self.kind {
            Kind::File { .. } => warn!(file = name.as_str(); "{self}"),
            Kind::Flag { .. } => warn!(flag = name.as_str(); "{self}"),
        }
    }
}

impl Config {
    /// Each file with a secret, and a database file, that other users can read, and each secret that was
    /// given as a flag.
    pub fn readable_secrets(&self) -> Vec<ReadableSecret> {
        let mut found = Found::default();
        for given in self.settings.table().iter().flat_map(|it| self.settings.all_of(it)) {
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
        if let Some(file) = self.database.file() {
            found.add_file(file, "the database file");
        }
        found.secrets
    }

    /// Warns of the [`readable_secrets`](Self::readable_secrets) and the [`old_names`](Self::old_names).
    pub fn warn(&self) {
        self.old_names().iter().for_each(|old_name| warn!("{old_name}"));
        self.readable_secrets().iter().for_each(ReadableSecret::warn);
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
