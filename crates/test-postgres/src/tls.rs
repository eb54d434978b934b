use std::{
    fs::{self, Permissions},
    io,
    net::{Ipv4Addr, SocketAddr, TcpListener},
    os::unix::fs::PermissionsExt,
    path::Path,
    process,
    sync::atomic::{AtomicU8, Ordering},
};

use diesel::{RunQueryDsl, connection::SimpleConnection, dsl::sql, select, sql_types::BigInt};

use crate::{PostgresServer, account::UnixAccount, restartable::wait_until};

/// A PostgreSQL server that accepts only encrypted connections at its address, and a database `grid` on it.
#[derive(Debug)]
pub struct TlsPostgres {
    server: PostgresServer,
    address: SocketAddr,
}

/// Files with what a server shows, and the authority of its clients. In PEM format.
#[derive(Debug, Clone, Copy)]
pub struct ServerCertificate<'a> {
    /// The certificate of the server.
    pub certificate: &'a Path,
    /// Its key.
    pub key: &'a Path,
    /// The certificate of the authority that signs those of clients.
    pub client_authority: &'a Path,
}

impl TlsPostgres {
    /// The user who logs in with a password.
    const USER: &str = "grid";
    const PASSWORD: &str = "secret";
    const RULES: &str = "local all all trust
hostssl grid grid 127.0.0.0/8 scram-sha-256
hostssl grid all 127.0.0.0/8 cert
";

    /// Starts a server with this certificate.
    pub fn start(shown: ServerCertificate<'_>) -> Self {
        let address = unused_address();
        let server = Self { server: PostgresServer::start_at(address), address };
        let (user, password) = (Self::USER, Self::PASSWORD);
        server.execute(&format!("create role {user} login password '{password}'"));
        server.execute(&format!("create database grid owner {user}"));
        server.switch_tls_on(shown).unwrap_or_else(|error| panic!("cannot write: {error}"));
        server
    }

    fn switch_tls_on(&self, shown: ServerCertificate<'_>) -> io::Result<()> {
        let data = self.server.directory().expect("the server was started here").join("data");
        let account = UnixAccount::unprivileged();
        for (name, file) in [
            ("server.crt", shown.certificate),
            ("server.key", shown.key),
            ("clients.crt", shown.client_authority),
        ] {
            let copy = data.join(name);
            fs::copy(file, &copy)?;
            fs::set_permissions(&copy, Permissions::from_mode(0o600))?;
            account.take_ownership(&copy)?;
        }
        fs::write(data.join("pg_hba.conf"), Self::RULES)?;
        self.execute("alter system set ssl_ca_file = 'clients.crt'");
        self.execute("alter system set ssl = on");
        self.execute("select pg_reload_conf()");
        let is_on = || self.count("pg_settings where name = 'ssl' and setting = 'on'") == 1;
        wait_until("the server uses TLS", is_on);
        Ok(())
    }

    /// Lets a user log in with a certificate whose common name is that of the user.
    pub fn add_certified_user(&self, name: &str) {
        self.execute(&format!("create role \"{name}\" login in role {}", Self::USER));
    }

    /// The URL for a user with a password. The certificate of the server must be for `host`.
    pub fn url(&self, host: &str, parameters: &str) -> String {
        let login = format!("{}:{}", Self::USER, Self::PASSWORD);
        self.url_of(&login, host, parameters)
    }

    /// The URL for a user without a password.
    pub fn url_of(&self, login: &str, host: &str, parameters: &str) -> String {
        let (ip, port) = (self.address.ip(), self.address.port());
        format!("postgresql://{login}@{host}:{port}/grid?hostaddr={ip}&{parameters}")
    }

    /// How many encrypted connections to the database there are.
    pub fn encrypted_connections(&self) -> i64 {
        self.count("pg_stat_ssl join pg_stat_activity using (pid) where ssl and datname = 'grid'")
    }

    fn count(&self, rows: &str) -> i64 {
        select(sql::<BigInt>(&format!("(select count(*) from {rows})")))
            .get_result(&mut self.server.server_url().connect())
            .unwrap_or_else(|error| panic!("cannot count {rows:?}: {error}"))
    }

    fn execute(&self, sql: &str) {
        self.server
            .server_url()
            .connect()
            .batch_execute(sql)
            .unwrap_or_else(|error| panic!("cannot execute {sql:?}: {error}"));
    }
}

/// A free port of a loopback address that belongs to this process. No connection of another program takes the port before
/// the server does, because those come from 127.0.0.1.
fn unused_address() -> SocketAddr {
    static SERVERS: AtomicU8 = AtomicU8::new(0);
    let [_, high, middle, low] = process::id().to_be_bytes();
    let second = 64 + (high & 0x3f) + SERVERS.fetch_add(1, Ordering::Relaxed) % 64;
    let address = Ipv4Addr::new(127, second, middle, low);
    TcpListener::bind((address, 0))
        .and_then(|listener| listener.local_addr())
        .unwrap_or_else(|error| panic!("cannot listen on {address}: {error}"))
}
