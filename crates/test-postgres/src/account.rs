use std::{
    io,
    os::unix::{fs::chown, process::CommandExt},
    path::Path,
    process::Command,
};

/// The operating system account that the server runs as: the current user, or an unprivileged one
/// if the current user is root, because PostgreSQL refuses to run as root.
#[derive(Debug, Clone, Copy)]
pub(crate) struct UnixAccount {
    uid: u32,
    gid: u32,
}

impl UnixAccount {
    const ROOT: u32 = 0;
    const INSTEAD_OF_ROOT: [&str; 2] = ["postgres", "nobody"];

    pub(crate) fn unprivileged() -> Self {
        let current = Self::look_up(&[]).expect("`id` must print the current user");
        if current.uid != Self::ROOT {
            return current;
        }
        Self::INSTEAD_OF_ROOT
            .iter()
            .find_map(|name| Self::look_up(&[name]))
            .expect("to run PostgreSQL as root, the user `postgres` or `nobody` must exist")
    }

    pub(crate) fn uid(&self) -> u32 {
        self.uid
    }

    /// A command that runs as this account, in a directory that every account may enter.
    pub(crate) fn command(&self, program: impl AsRef<Path>) -> Command {
        let mut command = Command::new(program.as_ref());
        command.uid(self.uid).gid(self.gid).current_dir("/");
        command
    }

    /// Makes this account the owner of the file.
    pub(crate) fn take_ownership(&self, path: &Path) -> io::Result<()> {
        chown(path, Some(self.uid), Some(self.gid))
    }

    /// The user with this name; without a name, the current user.
    fn look_up(name: &[&str]) -> Option<Self> {
        let number = |option| {
            let output = Command::new("id").arg(option).args(name).output().ok()?;
            String::from_utf8(output.stdout).ok()?.trim().parse().ok()
        };
        Some(Self { uid: number("-u")?, gid: number("-g")? })
    }
}
