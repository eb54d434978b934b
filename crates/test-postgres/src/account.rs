use std::{
    io,
    os::unix::{fs::chown, process::CommandExt},
    path::Path,
    process::Command,
};

/// Whom the server runs as: ourselves, or somebody with fewer rights where we are root, because
/// PostgreSQL refuses to be run by root.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Account {
    uid: u32,
    gid: u32,
}

impl Account {
    const ROOT: u32 = 0;
    const INSTEAD_OF_ROOT: [&str; 2] = ["postgres", "nobody"];

    pub(crate) fn unprivileged() -> Self {
        let ourselves = Self::ask(&[]).expect("`id` must say who we are");
        if ourselves.uid != Self::ROOT {
            return ourselves;
        }
        Self::INSTEAD_OF_ROOT
            .iter()
            .find_map(|name| Self::ask(&[name]))
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

    pub(crate) fn take_over(&self, path: &Path) -> io::Result<()> {
        chown(path, Some(self.uid), Some(self.gid))
    }

    fn ask(name: &[&str]) -> Option<Self> {
        let number = |option| {
            let output = Command::new("id").arg(option).args(name).output().ok()?;
            String::from_utf8(output.stdout).ok()?.trim().parse().ok()
        };
        Some(Self { uid: number("-u")?, gid: number("-g")? })
    }
}
