use crate::{
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
