use std::process::Child;

use diesel::{PgConnection, QueryableByName, RunQueryDsl, sql_query, sql_types::BigInt};

use crate::{
    batches::Made,
    bench::Serving,
    client::{Answer, ask, request},
    group::Group,
    server::{Server, Stop},
    until::{until, until_some},
};

const SERVICES: usize = 10;

fn health(instance: &Serving) -> Answer {
    let request = request("GET", "/health", &[], b"");
    until_some("its health is told", || ask(instance.address, &request).ok())
}

/// The instances wait while the database is away, say so, and go on when it is back.
fn survive(begin: impl Fn(&Server), end: impl Fn(&Server)) {
    let server = Server::start(100);
    let group = Group::over(server.url(), SERVICES);
    let instances = ["first", "second"].map(|name| group.start(name));
    instances[0].hand_in(&group.batches(0));
    group.bench.until_all_committed(&group.batches(0));

    begin(&server);
    for instance in &instances {
        until("an instance is not well", || health(instance).status == 503);
        let answer = health(instance).json();
        assert_eq!(answer["status"], "unhealthy", "{answer}");
        assert!(answer["reasons"].to_string().contains("database"), "{answer}");
        let stderr = instance.program.stderr();
        assert!(stderr.contains("WARN") || stderr.contains("ERROR"), "nothing is logged: {stderr}");
    }
    end(&server);
    instances.iter().for_each(|instance| {
        until("an instance is well again", || health(instance).status == 200);
    });
    instances[1].hand_in(&group.batches(1));
    group.bench.until_all_committed(&[group.batches(0), group.batches(1)].concat());
    instances.into_iter().for_each(Serving::stop);
}

#[test]
fn instances_wait_for_a_database_that_restarts() {
    survive(|server| server.stop(Stop::Fast), Server::go_on);
}

#[test]
fn instances_wait_for_a_database_that_refuses_them() {
    survive(Server::refuse, Server::accept);
}

#[test]
fn instances_go_on_with_a_standby_that_is_promoted() {
    let standby = std::cell::Cell::new(None);
    survive(
        |server| {
            standby.set(Some(follow(server)));
            server.stop(Stop::Immediate);
        },
        |server| promote(server, standby.take().unwrap()),
    );
}

/// A copy of the server that follows it, and without which nothing is committed any more.
fn follow(server: &Server) -> Child {
    let (here, command) = (server.directory().display().to_string(), server.command());
    let (programs, _) = command.split_once("/postgres \"").unwrap();
    let backup = format!(
        "{programs}/pg_basebackup -D {here}/standby -R -X stream -c fast -h {here} -p 5432 \
         -U postgres && mkdir {here}/aside"
    );
    assert!(server.spawn(&backup).wait().unwrap().success());
    // It listens elsewhere until it is needed here.
    let elsewhere = command
        .replace(&format!("{here}/data"), &format!("{here}/standby"))
        .replace(&format!("\"-k\" \"{here}\""), &format!("\"-k\" \"{here}/aside\""));
    assert_ne!(elsewhere, command);
    let child = server.spawn(&format!("exec {elsewhere}"));
    server.run("alter system set synchronous_standby_names = '*'");
    server.run("select pg_reload_conf()");
    Server::until("the standby follows", || followers(server) == 1);
    child
}

fn followers(server: &Server) -> i64 {
    #[derive(QueryableByName)]
    struct Count {
        #[diesel(sql_type = BigInt)]
        count: i64,
    }
    let mut connection: PgConnection = server.connect_as_owner().unwrap();
    let followers = sql_query(
        "select count(*) as count from pg_stat_replication where sync_state in ('sync', 'quorum')",
    );
    followers.get_result::<Count>(&mut connection).unwrap().count
}

/// The standby takes the server's place.
fn promote(server: &Server, mut standby: Child) {
    let (here, command) = (server.directory().display().to_string(), server.command());
    let stop = format!("kill -INT $(head -n 1 {here}/standby/postmaster.pid)");
    assert!(server.spawn(&stop).wait().unwrap().success());
    standby.wait().unwrap();
    let commit_alone = "synchronous_standby_names = ''";
    let alone = format!("echo \"{commit_alone}\" >> {here}/standby/postgresql.auto.conf");
    assert!(server.spawn(&alone).wait().unwrap().success());
    let instead = command.replace(&format!("{here}/data"), &format!("{here}/standby"));
    server.become_server(server.spawn(&format!("exec {instead}")));
    server.run("select pg_promote()");
}

#[test]
fn what_a_database_aborts_for_serialization_is_done_again() {
    let server = Server::start(100);
    server.run("alter database grid set default_transaction_isolation = 'serializable'");
    let group = Group::over(server.url(), SERVICES);
    let instances = ["first", "second"].map(|name| group.start(name));
    let rounds: Vec<_> = (0..4).map(|number| group.batches(number)).collect();
    for (number, round) in rounds.iter().enumerate() {
        hand_in_again_and_again(&instances[number % 2], round);
    }
    group.bench.until_all_committed(&rounds.concat());
    instances.into_iter().for_each(Serving::stop);
}

/// As clients do: what is answered with 503 is handed in once more.
fn hand_in_again_and_again(instance: &Serving, batches: &[Made]) {
    for batch in batches {
        until("a batch is taken", || {
            let answer = instance.try_hand_in(std::slice::from_ref(batch)).unwrap();
            assert!([202, 503].contains(&answer.status), "{answer:?}");
            answer.status == 202
        });
    }
}
