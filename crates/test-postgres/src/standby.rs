use std::{fs, process::Child};

use diesel::{PgConnection, RunQueryDsl, dsl::sql, select, sql_types::Bool};

use crate::restartable::{RestartablePostgres, send_signal, wait_until};

/// A standby of a [`RestartablePostgres`], in a directory beside its data.
///
/// When it is promoted, it becomes the server: it gets the socket of the server that it replaces.
#[derive(Debug)]
pub struct Standby {
    process: Child,
}

impl Standby {
    /// Starts an asynchronous standby: the server commits without it.
    pub fn start(postgres: &RestartablePostgres) -> Self {
        let directory = postgres.directory().display().to_string();
        let command = postgres.start_command();
        let (bin, _) = command.split_once("/postgres \"").expect("the command names its program");
        let backup = format!(
            "{bin}/pg_basebackup -D {directory}/standby -R -X stream -c fast -h {directory} \
             -p 5432 -U postgres && mkdir {directory}/standby-socket"
        );
        run(postgres, &backup);
        Self::run(postgres)
    }

    /// Starts a synchronous standby: from then on the server commits nothing without it.
    pub fn start_synchronous(postgres: &RestartablePostgres) -> Self {
        let standby = Self::start(postgres);
        postgres.execute("alter system set synchronous_standby_names = '*'");
        postgres.execute("select pg_reload_conf()");
        wait_until("the standby is synchronous", || {
            is_true(
                postgres,
                "exists (select from pg_stat_replication where sync_state in ('sync', 'quorum'))",
            )
        });
        standby
    }

    /// Its socket is in another directory until it is promoted.
    fn run(postgres: &RestartablePostgres) -> Self {
        let directory = postgres.directory().display().to_string();
        let command = promoted_command(postgres).replace(
            &format!("\"-k\" \"{directory}\""),
            &format!("\"-k\" \"{directory}/standby-socket\""),
        );
        Self { process: postgres.spawn_shell(&format!("exec {command}")) }
    }

    /// Waits until it has everything that the server has committed.
    pub fn wait_until_caught_up(&self, postgres: &RestartablePostgres) {
        wait_until("the standby has caught up", || {
            is_true(
                postgres,
                "exists (select from pg_stat_replication where replay_lsn >= pg_current_wal_lsn())",
            )
        });
    }

    /// Stops it. The standby does not get what the server commits from now on.
    pub fn stop(&mut self, postgres: &RestartablePostgres) {
        let pid_file = postgres.directory().join("standby/postmaster.pid");
        let text = fs::read_to_string(&pid_file)
            .unwrap_or_else(|error| panic!("cannot read {}: {error}", pid_file.display()));
        let process_id = text.lines().next().expect("the first line is the process id");
        assert!(send_signal("INT", process_id), "cannot send INT to {process_id}");
        self.process.wait().expect("the standby's process can be waited for");
    }

    /// Promotes it in place of the server, which was stopped.
    pub fn promote(mut self, postgres: &RestartablePostgres) {
        if self.process.try_wait().is_ok_and(|ended| ended.is_none()) {
            self.stop(postgres);
        }
        let directory = postgres.directory().display().to_string();
        let setting = "synchronous_standby_names = ''";
        run(postgres, &format!("echo \"{setting}\" >> {directory}/standby/postgresql.auto.conf"));
        let command = promoted_command(postgres);
        postgres.replace_process(postgres.spawn_shell(&format!("exec {command}")));
        postgres.execute("select pg_promote()");
    }
}

impl Drop for Standby {
    fn drop(&mut self) {
        if self.process.try_wait().is_ok_and(|ended| ended.is_none()) {
            // Its data is removed with the server's, so the stop need not be clean.
            send_signal("QUIT", &self.process.id().to_string());
            let _ = self.process.wait();
        }
    }
}

/// The command that runs the standby with the socket of the server.
fn promoted_command(postgres: &RestartablePostgres) -> String {
    let directory = postgres.directory().display().to_string();
    let command = postgres.start_command();
    let promoted = command.replace(&format!("{directory}/data"), &format!("{directory}/standby"));
    assert_ne!(promoted, command);
    promoted
}

fn run(postgres: &RestartablePostgres, command: &str) {
    let status = postgres.spawn_shell(command).wait().expect("the shell can be waited for");
    assert!(status.success(), "failed: {command}");
}

fn is_true(postgres: &RestartablePostgres, condition: &str) -> bool {
    let mut connection: PgConnection = postgres.connect_as_superuser().expect("the server runs");
    select(sql::<Bool>(condition)).get_result(&mut connection).expect("the condition is valid")
}
