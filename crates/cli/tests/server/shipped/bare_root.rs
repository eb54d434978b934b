//! A file system with nothing but what is shipped.

use std::{
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt,
    path::Path,
    process::Command,
};

use tempfile::TempDir;

use crate::packages::{built_package, program, root, succeed};

pub struct BareRoot {
    folder: TempDir,
}

impl BareRoot {
    /// A system on which the package is installed.
    pub fn of_package() -> Self {
        let made = tempfile::tempdir().unwrap();
        Self::make("package", &built_package(made.path()))
    }

    /// What the image has, with a program that was built on this system.
    pub fn of_image() -> Self {
        Self::make("image", Path::new(program()))
    }

    fn make(kind: &str, file: &Path) -> Self {
        // Every user must be able to enter it.
        let folder = tempfile::Builder::new().permissions(Permissions::from_mode(0o755)).tempdir();
        let folder = folder.unwrap();
        let mut script = Command::new(root().join("scripts/bare-root"));
        // The first time, it takes longer than other commands may.
        let made = script.arg(kind).arg(file).arg(folder.path()).output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        // As an installed system and an engine have it.
        fs::write(folder.path().join("etc/hosts"), "127.0.0.1 localhost\n").unwrap();
        Self { folder }
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Copies a file into the file system, where every user can read it.
    pub fn copy(&self, file: &Path, to: &str) {
        let to = self.path().join(to.strip_prefix('/').unwrap());
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::copy(file, &to).unwrap();
        fs::set_permissions(to, Permissions::from_mode(0o644)).unwrap();
    }

    /// Has the system trust an authority, as the manual of Debian says.
    pub fn trust(&self, name: &str, authority: &Path) {
        self.copy(authority, &format!("/usr/local/share/ca-certificates/{name}.crt"));
        succeed(&mut self.enter("", &["update-ca-certificates"]));
    }

    /// A command within, by root, that begins with this one, such as `setpriv`.
    pub fn enter(&self, wrapper: &str, command: &[&str]) -> Command {
        let setup = "mount --rbind /dev \"$root/dev\"; mount -t proc proc \"$root/proc\"";
        self.enter_with(setup, wrapper, command)
    }

    /// The same, after commands by which the file system, at `$root`, is changed for this command alone.
    pub fn enter_with(&self, setup: &str, wrapper: &str, command: &[&str]) -> Command {
        let script = format!(
            "root=$0; mount --bind \"$root\" \"$root\"; {setup}; exec chroot \"$root\" {wrapper} \"$@\""
        );
        let mut unshare = Command::new("unshare");
        unshare
            .args(["--mount", "--uts", "--propagation", "private", "sh", "-ec", &script])
            .arg(self.path())
            .args(command)
            .env_clear()
            .env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
        unshare
    }
}
