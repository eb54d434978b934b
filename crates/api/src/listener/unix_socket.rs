use std::{
    fs, io,
    os::unix::{
        fs::{FileTypeExt, MetadataExt, PermissionsExt},
        net::{UnixListener, UnixStream},
    },
    path::{Path, PathBuf},
    process,
};

/// A listener at a file. Dropping it removes the file.
#[derive(Debug)]
pub struct UnixSocket {
    listener: UnixListener,
    path: PathBuf,
    /// Device and inode, to tell the file from one that another process has put in its place.
    file: (u64, u64),
}

impl UnixSocket {
    /// Listens at the file, with these permissions. The socket of a process that has ended is replaced.
    pub fn bind(path: &Path, mode: u32) -> io::Result<Self> {
        check_unused(path)?;
        // The file gets its place when it has its permissions, so that no one connects before.
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(format!(".{}", process::id()));
        let unfinished = path.with_file_name(name);
        let _ = fs::remove_file(&unfinished);
        let listener = UnixListener::bind(&unfinished)?;
        let placed = (|| {
            listener.set_nonblocking(true)?;
            fs::set_permissions(&unfinished, fs::Permissions::from_mode(mode))?;
            fs::rename(&unfinished, path)?;
            identity(path)
        })();
        match placed {
            Ok(file) => Ok(Self { listener, path: path.to_owned(), file }),
            Err(error) => {
                let _ = fs::remove_file(&unfinished);
                Err(error)
            }
        }
    }

    pub(super) fn try_clone(&self) -> io::Result<UnixListener> {
        self.listener.try_clone()
    }
}

impl Drop for UnixSocket {
    fn drop(&mut self) {
        if identity(&self.path).is_ok_and(|file| file == self.file) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn identity(path: &Path) -> io::Result<(u64, u64)> {
    let metadata = fs::symlink_metadata(path)?;
    Ok((metadata.dev(), metadata.ino()))
}

/// Only a socket at which no process listens may be replaced.
fn check_unused(path: &Path) -> io::Result<()> {
    let metadata = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        metadata => metadata?,
    };
    if !metadata.file_type().is_socket() {
        return Err(io::Error::new(
            io::ErrorKind::AlreadyExists,
            "there is a file that is no socket; remove it, or choose another path",
        ));
    }
    match UnixStream::connect(path) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Ok(()),
        Err(error) => Err(error),
        Ok(_) => Err(io::Error::new(io::ErrorKind::AddrInUse, "another process listens there")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn file_has_its_mode_and_is_removed() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("s");
        let socket = UnixSocket::bind(&path, 0o660).unwrap();
        assert_eq!(mode(&path), 0o660);
        UnixStream::connect(&path).unwrap();
        drop(socket);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    }

    #[test]
    fn socket_without_a_process_is_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("s");
        drop(UnixListener::bind(&path).unwrap());
        assert!(path.exists());
        let socket = UnixSocket::bind(&path, 0o600).unwrap();
        UnixStream::connect(&path).unwrap();
        drop(socket);
    }

    #[test]
    fn what_others_use_is_not_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("s");
        let _first = UnixSocket::bind(&path, 0o600).unwrap();
        assert_eq!(UnixSocket::bind(&path, 0o600).unwrap_err().kind(), io::ErrorKind::AddrInUse);
        let file = directory.path().join("f");
        fs::write(&file, "kept").unwrap();
        assert_eq!(
            UnixSocket::bind(&file, 0o600).unwrap_err().kind(),
            io::ErrorKind::AlreadyExists
        );
        assert_eq!(fs::read(&file).unwrap(), b"kept");
    }

    #[test]
    fn socket_of_a_successor_is_not_removed() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("s");
        let first = UnixSocket::bind(&path, 0o600).unwrap();
        fs::remove_file(&path).unwrap();
        let _second = UnixSocket::bind(&path, 0o600).unwrap();
        drop(first);
        UnixStream::connect(&path).unwrap();
    }
}
