//! What packages and images have beyond a plain build: PostgreSQL over TLS, and the libraries and certificates that this
//! needs; and upgrades of the package. `scripts/test --shipped` runs these tests.

mod bare_root;
mod bare_roots;
mod certificates;
mod database_tls;
mod tls_front;
mod unattended_upgrades;
mod unit;
