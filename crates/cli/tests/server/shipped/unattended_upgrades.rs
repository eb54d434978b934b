//! The package is upgraded while no one answers questions.

use std::{fs, path::Path};

use super::bare_root::BareRoot;
use crate::packages::{built_package, changed_package, succeed, with_another_default};

const CONFIGURATION: &str = "etc/grid-batch/grid-batch.toml";

/// Changes the package to one of an earlier release, whose configuration `dpkg` knows.
fn with_conffile(content: &Path) {
    let file = content.join(CONFIGURATION);
    fs::rename(content.join("usr/share/grid-batch/grid-batch.toml"), file).unwrap();
    fs::write(content.join("DEBIAN/conffiles"), format!("/{CONFIGURATION}\n")).unwrap();
}

#[test]
fn changed_configuration_outlasts_unattended_upgrades() {
    let made = tempfile::tempdir().unwrap();
    let package = built_package(made.path());
    let root = BareRoot::of_package();
    let install = |version: &str, change: &dyn Fn(&Path)| {
        let file = root.path().join("package.deb");
        changed_package(&package, &file, version, change);
        fs::remove_dir_all(file.with_extension("content")).unwrap();
        let mut command = root.enter("", &["dpkg", "--install", "/package.deb"]);
        succeed(command.env("DEBIAN_FRONTEND", "noninteractive"));
    };
    let configuration = root.path().join(CONFIGURATION);
    let read = || fs::read_to_string(&configuration).unwrap();
    succeed(&mut root.enter("", &["dpkg", "--purge", "grid-batch"]));
    assert!(!configuration.exists(), "a purge removes the configuration");

    install("1.0", &with_conffile);
    let changed = read().replace("# kind = \"\"", "kind = \"sawtooth\"");
    assert!(changed.contains("\nkind = "), "{changed}");
    fs::write(&configuration, &changed).unwrap();
    for version in ["2.0", "3.0"] {
        install(version, &with_another_default);
        assert_eq!(read(), changed, "after the upgrade to {version}");
    }
    succeed(&mut root.enter("", &["dpkg", "--purge", "grid-batch"]));
    assert!(!configuration.exists());
    install("4.0", &with_another_default);
    assert!(read().ends_with("# Another comment.\n"), "a new installation has the new file");
}
