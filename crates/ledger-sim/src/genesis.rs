//! The id of a ledger's first block. Each ledger has its own, and keeps it for as long as its record.

use std::{
    fs,
    io::ErrorKind,
    path::{Path, PathBuf},
};

use grid_batch_core::ItemId;

use crate::{
    random::Random,
    record::{RecordError, io_error},
};

/// An id that depends only on the seed.
pub(crate) fn from_seed(seed: u64) -> ItemId {
    let mut random = Random::from_seed(seed);
    let mut bytes = [0; 64];
    for part in bytes.chunks_exact_mut(8) {
        part.copy_from_slice(&random.next().to_be_bytes());
    }
    ItemId::from_bytes(bytes)
}

/// The id in the file beside a record; a new file with a new id if there is none.
///
/// An incomplete line is replaced: the ledger was killed while it wrote the line, before any response
/// depended on it.
pub(crate) fn kept_beside(record: &Path, seed: u64) -> Result<ItemId, RecordError> {
    let path = file_beside(record);
    if let Some(line) = complete_line(&path)? {
        return line.parse().map_err(|failure| RecordError::Line {
            path,
            line: 1,
            reason: format!("it is not the id of a block: {failure}"),
        });
    }
    let id = from_seed(seed);
    fs::write(&path, format!("{id}\n")).map_err(|source| io_error(&path, source))?;
    Ok(id)
}

fn complete_line(path: &Path) -> Result<Option<String>, RecordError> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(text.split_once('\n').map(|(line, _)| line.to_owned())),
        Err(failure) if failure.kind() == ErrorKind::NotFound => Ok(None),
        Err(source) => Err(io_error(path, source)),
    }
}

fn file_beside(record: &Path) -> PathBuf {
    let mut name = record.as_os_str().to_owned();
    name.push(".genesis");
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn id_is_kept_beside_the_record() {
        let directory = tempfile::tempdir().unwrap();
        let record = directory.path().join("record");
        let first = kept_beside(&record, 1).unwrap();
        assert_eq!(first, from_seed(1));
        assert_eq!(kept_beside(&record, 2).unwrap(), first);
        assert_ne!(kept_beside(&directory.path().join("other"), 2).unwrap(), first);
        fs::write(file_beside(&record), "no id\n").unwrap();
        let error = kept_beside(&record, 1).unwrap_err();
        assert!(error.to_string().contains("it is not the id of a block"), "{error}");
    }

    #[test]
    fn incomplete_id_is_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let record = directory.path().join("record");
        for incomplete in ["", "0123"] {
            fs::write(file_beside(&record), incomplete).unwrap();
            assert_eq!(kept_beside(&record, 1).unwrap(), from_seed(1));
            assert_eq!(kept_beside(&record, 2).unwrap(), from_seed(1));
        }
    }
}
