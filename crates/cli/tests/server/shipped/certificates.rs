//! Authorities and what they sign, made by the program `openssl`.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use tempfile::TempDir;

use crate::packages::succeed;

/// An authority of its own.
pub struct Authority {
    folder: TempDir,
}

/// A certificate and its key, in PEM format.
pub struct Issued {
    pub certificate: PathBuf,
    pub key: PathBuf,
}

impl Authority {
    pub fn new(name: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        // Without a configuration of its own, openssl adds extensions of the system's.
        fs::write(folder.path().join("openssl.cnf"), "[req]\ndistinguished_name = name\n[name]\n")
            .unwrap();
        let authority = Self { folder };
        let extensions = ["basicConstraints=critical,CA:TRUE", "keyUsage=critical,keyCertSign"];
        authority.request("authority", name, &extensions, &[]);
        authority
    }

    /// The certificate of the authority.
    pub fn certificate(&self) -> PathBuf {
        self.path("authority.pem")
    }

    /// Signs the certificate of a host or a user.
    pub fn issue(&self, name: &str) -> Issued {
        let host = format!("subjectAltName=DNS:{name}");
        let extensions = ["basicConstraints=critical,CA:FALSE", host.as_str()];
        let (certificate, key) = (self.certificate(), self.path("authority.key"));
        self.request(name, name, &extensions, &[("-CA", &certificate), ("-CAkey", &key)]);
        Issued {
            certificate: self.path(&format!("{name}.pem")),
            key: self.path(&format!("{name}.key")),
        }
    }

    /// Makes a key and a certificate with this name in it.
    fn request(&self, file: &str, name: &str, extensions: &[&str], signer: &[(&str, &Path)]) {
        let mut command = Command::new("openssl");
        command
            .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"])
            .args(["-nodes", "-days", "2", "-subj", &format!("/CN={name}"), "-config"])
            .arg(self.path("openssl.cnf"))
            .arg("-keyout")
            .arg(self.path(&format!("{file}.key")))
            .arg("-out")
            .arg(self.path(&format!("{file}.pem")));
        for extension in extensions {
            command.args(["-addext", extension]);
        }
        for (option, file) in signer {
            command.arg(option).arg(file);
        }
        succeed(&mut command);
    }

    fn path(&self, file: &str) -> PathBuf {
        self.folder.path().join(file)
    }
}
