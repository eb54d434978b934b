//! What an instance has seen in its SQLite database, stored in the lock file beside it as a few lines and their hash.

use std::{
    fs::{self, File},
    io::{self, Seek, SeekFrom, Write},
    path::Path,
};

use super::last_seen::Seen;

/// How often a file is read if it is just being written.
const TRIES: usize = 5;

/// Reads the file. Returns the default if it does not exist or nothing was written to it.
pub(super) fn read(path: &Path) -> io::Result<Seen> {
    let mut tried = 0;
    loop {
        let text = match fs::read_to_string(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Seen::default()),
            read => read?,
        };
        if text.is_empty() {
            return Ok(Seen::default());
        }
        tried += 1;
        match parse(&text) {
            Some(seen) => return Ok(seen),
            None if tried < TRIES => {}
            None => return Err(io::Error::new(io::ErrorKind::InvalidData, "it has another form")),
        }
    }
}

/// Replaces the content. The rest of longer previous content may follow the hash.
pub(super) fn write(mut file: &File, seen: &Seen) -> io::Result<()> {
    file.seek(SeekFrom::Start(0))?;
    file.write_all(format(seen).as_bytes())
}

fn format(seen: &Seen) -> String {
    let (instance, renewals) =
        seen.instance.as_ref().map_or(("", 0), |(instance, renewals)| (instance, *renewals));
    let registrations = seen.registrations;
    let restored_at = seen.restored_at.map(|at| at.to_string()).unwrap_or_default();
    let lines = format!(
        "registrations {registrations}\nrestored_at {restored_at}\nrenewals {renewals}\ninstance {instance}"
    );
    let hash = hash(&lines);
    format!("{lines}\nhash {hash:016x}\n")
}

fn parse(text: &str) -> Option<Seen> {
    let (lines, rest) = text.split_once("\nhash ")?;
    if u64::from_str_radix(rest.get(..16)?, 16) != Ok(hash(lines)) {
        return None;
    }
    let mut lines = lines.lines();
    let mut value = |name: &str| lines.next()?.strip_prefix(name)?.strip_prefix(' ');
    let registrations = value("registrations")?.parse().ok()?;
    let restored_at = match value("restored_at")? {
        "" => None,
        at => Some(at.parse().ok()?),
    };
    let renewals = value("renewals")?.parse().ok()?;
    let instance = value("instance").filter(|instance| !instance.is_empty());
    let instance = instance.map(|instance| (instance.to_owned(), renewals));
    Some(Seen { instance, registrations, restored_at })
}

/// FNV-1a. It only shows whether the file was written as a whole.
fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(instance: &str) -> Seen {
        Seen { instance: Some((instance.to_owned(), 7)), registrations: 3, restored_at: Some(5) }
    }

    #[test]
    fn what_was_written_last_is_read() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("batches.db.lock");
        assert_eq!(read(&path).unwrap(), Seen::default(), "there is no file");
        let file = File::create(&path).unwrap();
        assert_eq!(read(&path).unwrap(), Seen::default(), "nothing was written");
        let without_instance = Seen { instance: None, restored_at: None, ..seen("") };
        for seen in [seen("a hash of a long name"), without_instance, seen("short")] {
            write(&file, &seen).unwrap();
            assert_eq!(read(&path).unwrap(), seen);
        }
    }

    #[test]
    fn file_that_was_not_written_as_a_whole_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("batches.db.lock");
        let whole = format(&seen("north"));
        for text in [&whole[..20], &whole.replace("renewals 7", "renewals 8"), "another file"] {
            fs::write(&path, text).unwrap();
            assert!(read(&path).is_err(), "{text}");
        }
    }
}
