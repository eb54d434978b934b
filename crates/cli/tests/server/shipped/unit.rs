//! The restrictions of the unit, put in force without a service manager.

use std::{fs, path::Path, process::Command};

use super::bare_root::BareRoot;

/// How a directive of the unit is put in force.
enum Effect {
    /// A command before the file system, at `$root`, is entered.
    Setup(&'static str),
    /// Options of `setpriv`.
    Privileges(&'static str),
    /// Another directive, or the file system, has the same effect.
    Follows,
    /// Only a service manager does this.
    OfManager,
    /// A filter of system calls, or a name space that `unshare` cannot make: not in force in this test.
    NotInForce,
}
use Effect::{Follows, NotInForce, OfManager, Privileges, Setup};

/// The directives in the order in which they take effect. The test fails for one that is not here.
const EFFECTS: &[(&str, Effect)] = &[
    ("Type=", OfManager),
    ("ExecStart=", OfManager),
    ("TimeoutStartSec=", OfManager),
    ("TimeoutStopSec=", OfManager),
    ("WatchdogSec=", OfManager),
    ("Restart=", OfManager),
    ("RestartSec=", OfManager),
    ("RestartPreventExitStatus=", OfManager),
    ("RemoveIPC=true", OfManager),
    ("WorkingDirectory=/var/lib/grid-batch", OfManager),
    ("UMask=0077", Setup("umask 0077")),
    // The test may have fewer, and only a privileged process can raise that.
    ("LimitNOFILE=65536", Setup("if [ \"$(ulimit -Hn)\" -gt 65536 ]; then ulimit -n 65536; fi")),
    ("LimitCORE=0", Setup("ulimit -c 0")),
    (
        "StateDirectory=grid-batch",
        Setup(
            "chroot \"$root\" install -d -o grid-batch -g grid-batch -m 0700 /var/lib/grid-batch; \
             mount --bind \"$root/var/lib/grid-batch\" \"$root/var/lib/grid-batch\"",
        ),
    ),
    ("StateDirectoryMode=0700", Follows),
    (
        "PrivateTmp=true",
        Setup("for tmp in tmp var/tmp; do mount -t tmpfs -o mode=1777 tmpfs \"$root/$tmp\"; done"),
    ),
    (
        "ProtectHome=true",
        Setup("for home in home root; do mount -t tmpfs -o mode=0,ro tmpfs \"$root/$home\"; done"),
    ),
    (
        "PrivateDevices=true",
        Setup(
            "mount -t tmpfs -o mode=0755 tmpfs \"$root/dev\"; \
             for device in null zero full random urandom tty; do \
             touch \"$root/dev/$device\"; mount --bind \"/dev/$device\" \"$root/dev/$device\"; done",
        ),
    ),
    ("ProtectProc=invisible", Setup("proc=hidepid=invisible")),
    ("ProcSubset=pid", Setup("mount -t proc -o \"$proc,subset=pid\" proc \"$root/proc\"")),
    ("ProtectSystem=strict", Setup("mount -o remount,bind,ro \"$root\"")),
    ("ProtectHostname=true", Follows),
    ("ProtectControlGroups=true", Follows),
    ("ProtectKernelTunables=true", Follows),
    ("User=grid-batch", Privileges("--reuid=grid-batch")),
    ("Group=grid-batch", Privileges("--regid=grid-batch --clear-groups")),
    ("NoNewPrivileges=true", Privileges("--no-new-privs")),
    ("CapabilityBoundingSet=", Privileges("--bounding-set=-all --inh-caps=-all")),
    ("AmbientCapabilities=", Privileges("--ambient-caps=-all")),
    ("ProtectClock=true", Follows),
    ("ProtectKernelLogs=true", Follows),
    ("ProtectKernelModules=true", Follows),
    ("PrivateUsers=true", NotInForce),
    ("LockPersonality=true", NotInForce),
    ("MemoryDenyWriteExecute=true", NotInForce),
    ("RestrictAddressFamilies=", NotInForce),
    ("RestrictNamespaces=true", NotInForce),
    ("RestrictRealtime=true", NotInForce),
    ("RestrictSUIDSGID=true", NotInForce),
    ("SystemCallArchitectures=", NotInForce),
    ("SystemCallFilter=", NotInForce),
    ("SystemCallErrorNumber=", NotInForce),
];

/// What `unshare`, `mount` and `setpriv` can do of the unit in a root.
pub struct Restrictions {
    setup: String,
    wrapper: String,
}

impl Restrictions {
    pub fn of_unit(root: &Path) -> Self {
        let text = fs::read_to_string(root.join("lib/systemd/system/grid-batch.service")).unwrap();
        let (_, service) = text.split_once("[Service]\n").unwrap();
        let (service, _) = service.split_once("[Install]").unwrap();
        let lines = service.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
        let mut found: Vec<usize> = lines.map(index).collect();
        found.sort_unstable();
        let effects = found.iter().map(|index| &EFFECTS[*index].1);
        let setup = effects.clone().filter_map(|effect| match effect {
            Setup(command) => Some(*command),
            _ => None,
        });
        let privileges = effects.filter_map(|effect| match effect {
            Privileges(options) => Some(*options),
            _ => None,
        });
        Self {
            setup: setup.collect::<Vec<_>>().join("; "),
            wrapper: format!("setpriv {}", privileges.collect::<Vec<_>>().join(" ")),
        }
    }

    /// A command with these restrictions.
    pub fn enter(&self, root: &BareRoot, command: &[&str]) -> Command {
        root.enter_with(&self.setup, &self.wrapper, command)
    }
}

/// Which effect a line has. Those whose value does not matter, or is a list, are known by their beginning.
fn index(line: &str) -> usize {
    let is_of = |known: &str| line == known || (known.ends_with('=') && line.starts_with(known));
    EFFECTS
        .iter()
        .position(|(known, _)| is_of(known))
        .unwrap_or_else(|| panic!("how is {line} put in force? say it in the list of effects"))
}
