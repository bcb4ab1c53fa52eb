//! ACL, AUTH and what a restricted user may do.

use crate::harness::{Client, Server};

fn bulk(text: &str) -> String {
    format!("${}\r\n{text}\r\n", text.len())
}

/// A connection as `user`, whose password is `pw`.
fn client_of(server: &Server, user: &str) -> Client {
    let mut client = server.client();
    assert_eq!(client.ask(&format!("AUTH {user} pw")), "+OK\r\n");
    client
}

#[test]
fn a_user_is_made_described_and_removed() {
    let server = Server::start();
    let mut client = server.client();
    let hash = "30c952fab122c3f9759f02a6d95c3758b246b4fee239957b2d4fee46e26170c4";
    client.expect(&[
        ("ACL GETUSER nosuch", "$-1\r\n"),
        (
            "ACL SETUSER u on >pw ~a* %R~b* %W~c* %RW~d &ch* +@read -get +config|get (+ts.add ~z*) \
             (%R~q +@all -@dangerous)",
            "+OK\r\n",
        ),
        (
            "ACL GETUSER u",
            &[
                "*12\r\n$5\r\nflags\r\n*2\r\n$2\r\non\r\n$16\r\nsanitize-payload\r\n",
                "$9\r\npasswords\r\n*1\r\n",
                &bulk(hash),
                "$8\r\ncommands\r\n",
                &bulk("-@all +@read -get +config|get"),
                "$4\r\nkeys\r\n",
                &bulk("~a* %R~b* %W~c* ~d"),
                "$8\r\nchannels\r\n$4\r\n&ch*\r\n$9\r\nselectors\r\n*2\r\n",
                "*6\r\n$8\r\ncommands\r\n",
                &bulk("-@all +ts.add"),
                "$4\r\nkeys\r\n$3\r\n~z*\r\n$8\r\nchannels\r\n$0\r\n\r\n",
                "*6\r\n$8\r\ncommands\r\n",
                &bulk("+@all -@dangerous"),
                "$4\r\nkeys\r\n$4\r\n%R~q\r\n$8\r\nchannels\r\n$0\r\n\r\n",
            ]
            .concat(),
        ),
        ("ACL USERS", "*2\r\n$7\r\ndefault\r\n$1\r\nu\r\n"),
        ("ACL WHOAMI", "$7\r\ndefault\r\n"),
        ("ACL DELUSER u nosuch", ":1\r\n"),
    ]);
    let mut described = format!(
        "*2\r\n{}",
        bulk("user default on nopass sanitize-payload ~* &* +@all")
    );
    described += &bulk(&format!(
        "user v on sanitize-payload #{hash} ~a resetchannels -@all +get (~z* resetchannels -@all)"
    ));
    client.expect(&[
        ("ACL SETUSER v on >pw ~a +get (~z*)", "+OK\r\n"),
        ("ACL LIST", &described),
        ("ACL SETUSER v reset", "+OK\r\n"),
        ("ACL GETUSER v",
         "*12\r\n$5\r\nflags\r\n*2\r\n$3\r\noff\r\n$16\r\nsanitize-payload\r\n$9\r\npasswords\r\n*0\r\n\
          $8\r\ncommands\r\n$5\r\n-@all\r\n$4\r\nkeys\r\n$0\r\n\r\n$8\r\nchannels\r\n$0\r\n\r\n\
          $9\r\nselectors\r\n*0\r\n"),
    ]);
}

#[test]
fn later_rules_replace_earlier_ones() {
    let server = Server::start();
    let mut client = server.client();
    for (rules, commands) in [
        ("+@all -@all +@all", "+@all"),
        ("allcommands -config|set", "+@all -config|set"),
        ("-config", "+@all -config"),
        ("+config|get", "+@all -config +config|get"),
        ("nocommands +get +set -get", "-@all +set -get"),
        ("+@read -@read", "-@all +set -get -@read"),
        ("-@all +@all -ping +ping", "+@all +ping"),
    ] {
        assert_eq!(client.ask(&format!("ACL SETUSER u {rules}")), "+OK\r\n");
        let user = client.ask("ACL GETUSER u");
        assert!(
            user.contains(&format!("commands\r\n{}", bulk(commands))),
            "{rules}: {user}"
        );
    }
}

#[test]
fn rules_that_are_none_are_refused_and_change_nothing() {
    let server = Server::start();
    let mut client = server.client();
    client.expect(&[("ACL SETUSER u on ~a", "+OK\r\n")]);
    let before = client.ask("ACL GETUSER u");
    let unknown = "Unknown command or category name in ACL";
    let useless_key = "Adding a pattern after the * pattern (or the 'allkeys' flag) is not valid \
        and does not have any effect. Try 'resetkeys' to start with an empty list of patterns";
    let useless_channel = "Adding a pattern after the * pattern (or the 'allchannels' flag) is not \
        valid and does not have any effect. Try 'resetchannels' to start with an empty list of \
        channels";
    let hash = "The password hash must be exactly 64 characters and contain only lowercase \
        hexadecimal characters";
    for (rules, wrong, reason) in [
        ("off foo", "foo", "Syntax error"),
        ("off +nosuch", "+nosuch", unknown),
        ("+@nosuch", "+@nosuch", unknown),
        ("+config|nosuch", "+config|nosuch", unknown),
        ("-select|0", "-select|0", unknown),
        ("+", "+", unknown),
        (
            "+config|get|x",
            "+config|get|x",
            "Allowing first-arg of a subcommand is not supported",
        ),
        ("#abc", "#abc", hash),
        ("!abc", "!abc", hash),
        (
            "<no",
            "<no",
            "The password you are trying to remove from the user does not exist",
        ),
        ("%X~a", "%X~a", "Syntax error"),
        ("%~a", "%~a", "Syntax error"),
        ("(on)", "(on)", "Syntax error"),
        ("+get)", "+get)", unknown),
        ("allkeys ~more", "~more", useless_key),
        ("allchannels &more", "&more", useless_channel),
    ] {
        assert_eq!(
            client.ask(&format!("ACL SETUSER u {rules}")),
            format!("-ERR Error in ACL SETUSER modifier '{wrong}': {reason}\r\n")
        );
    }
    assert_eq!(client.ask("ACL GETUSER u"), before);
}

#[test]
fn wrong_words_of_acl_are_named() {
    let server = Server::start();
    let mut client = server.client();
    client.expect_errors(&[
        (
            "ACL SETUSER u (+get",
            "ERR Unmatched parenthesis in acl selector starting at '(+get'.",
        ),
        (
            "ACL DELUSER default",
            "ERR The 'default' user cannot be removed",
        ),
        ("ACL CAT nosuch", "ERR Unknown category 'nosuch'"),
        ("ACL LOG x", "ERR value is not an integer or out of range"),
        (
            "ACL GENPASS 4097",
            "ERR ACL GENPASS argument must be the number of bits for the output password, a \
             positive number up to 4096",
        ),
        (
            "ACL GENPASS 5 6",
            "ERR unknown subcommand or wrong number of arguments for 'GENPASS'. Try ACL HELP.",
        ),
        ("ACL foo", "ERR unknown subcommand 'foo'. Try ACL HELP."),
    ]);
    assert_eq!(
        client.ask_words(&["ACL", "SETUSER", "a b"]),
        "-ERR Usernames can't contain spaces or null characters\r\n"
    );
}

#[test]
fn a_restricted_user_does_what_it_may_and_no_more() {
    let server = Server::start();
    let mut admin = server.client();
    admin.expect(&[
        (
            "ACL SETUSER u on >pw ~a* %R~r* %W~w* +@all -config|set",
            "+OK\r\n",
        ),
        ("TS.ADD r1 1 1", ":1\r\n"),
    ]);
    let mut user = client_of(&server, "u");
    let key = "NOPERM No permissions to access a key";
    user.expect(&[
        ("ACL WHOAMI", "$1\r\nu\r\n"),
        ("TS.ADD a1 1 1", ":1\r\n"),
        ("TS.GET a1", "*2\r\n:1\r\n+1\r\n"),
        ("TS.GET r1", "*2\r\n:1\r\n+1\r\n"),
        ("EXISTS r1 w1", ":1\r\n"),
        ("DEL w1", ":0\r\n"),
        ("CONFIG GET nosuch", "*0\r\n"),
    ]);
    user.expect_errors(&[
        ("TS.ADD b 1 1", key),
        ("TS.ADD r1 2 2", key),
        ("TS.GET w1", key),
        ("TS.MADD a1 2 2 b 2 2", key),
        ("DEL a1 r1", key),
        ("EXISTS a1 b", key),
        (
            "CONFIG SET timeout 1",
            "NOPERM User u has no permissions to run the 'config|set' command",
        ),
        (
            "CONFIG nosuch",
            "ERR unknown subcommand 'nosuch'. Try CONFIG HELP.",
        ),
    ]);
    admin.expect(&[("EXISTS b", ":0\r\n"), ("TS.GET r1", "*2\r\n:1\r\n+1\r\n")]);
    // One pipeline, in which the permission ends half way.
    admin.expect(&[("ACL SETUSER u resetkeys ~n* +@all", "+OK\r\n")]);
    user.expect_errors(&[("TS.ADD a1 3 3", key)]);
    user.expect(&[
        ("TS.ADD n1 3 3", ":3\r\n"),
        ("AUTH default any", "+OK\r\n"),
        ("TS.ADD a1 3 3", ":3\r\n"),
    ]);
}

#[test]
fn a_user_who_takes_his_own_permission_loses_it_at_once() {
    let server = Server::start();
    server
        .client()
        .expect(&[("ACL SETUSER u on >pw ~* +@all", "+OK\r\n")]);
    let mut user = client_of(&server, "u");
    let mut pipeline = crate::harness::encoded("TS.ADD k 1 1");
    pipeline.extend(crate::harness::encoded("ACL SETUSER u -ts.add"));
    pipeline.extend(crate::harness::encoded("TS.ADD k 2 2"));
    user.send(&pipeline);
    assert_eq!(user.reply(), b":1\r\n");
    assert_eq!(user.reply(), b"+OK\r\n");
    assert_eq!(
        user.reply(),
        b"-NOPERM User u has no permissions to run the 'ts.add' command\r\n"
    );
}

#[test]
fn sessions_of_a_removed_user_end() {
    let server = Server::start();
    let mut admin = server.client();
    admin.expect(&[("ACL SETUSER u on >pw ~* +@all", "+OK\r\n")]);
    let mut user = client_of(&server, "u");
    admin.expect(&[
        ("ACL DELUSER u", ":1\r\n"),
        // Another user of the same name is another one.
        ("ACL SETUSER u on >pw ~* +@all", "+OK\r\n"),
    ]);
    user.send(&crate::harness::encoded("TS.ADD k 1 1"));
    assert_eq!(user.rest(), b"");
    admin.expect(&[("EXISTS k", ":0\r\n")]);
}

#[test]
fn logins_need_the_right_password() {
    let server = Server::with(&["--wal", "off", "--requirepass", "sec"]);
    let mut client = server.client();
    let wrong = "WRONGPASS invalid username-password pair or user is disabled.";
    client.expect_errors(&[
        ("PING", "NOAUTH Authentication required."),
        ("AUTH wrong", wrong),
        ("AUTH nosuch sec", wrong),
    ]);
    client.expect(&[
        ("AUTH sec", "+OK\r\n"),
        ("ACL SETUSER u >one >two", "+OK\r\n"),
    ]);
    client.expect_errors(&[("AUTH u one", wrong)]);
    client.expect(&[
        ("ACL SETUSER u on", "+OK\r\n"),
        ("AUTH u one", "+OK\r\n"),
        ("AUTH u two", "+OK\r\n"),
        ("AUTH default sec", "+OK\r\n"),
        ("ACL SETUSER u <one", "+OK\r\n"),
    ]);
    client.expect_errors(&[("AUTH u one", wrong)]);
    let log = client.ask("ACL LOG");
    assert!(log.starts_with("*3\r\n"), "{log}");
    for part in [
        "reason\r\n$4\r\nauth",
        "object\r\n$4\r\nAUTH",
        "username\r\n$6\r\nnosuch",
    ] {
        assert!(log.contains(part), "{part} in {log}");
    }
    client.expect(&[
        ("CONFIG SET requirepass other", "+OK\r\n"),
        ("AUTH other", "+OK\r\n"),
        ("ACL LOG RESET", "+OK\r\n"),
        ("ACL LOG", "*0\r\n"),
    ]);
    client.expect_errors(&[("AUTH sec", wrong)]);
    assert_eq!(
        client.ask_words(&["CONFIG", "SET", "requirepass", ""]),
        "+OK\r\n"
    );
    client.expect_errors(&[(
        "AUTH x",
        "ERR AUTH <password> called without any password configured for the default user. Are \
         you sure your configuration is correct?",
    )]);
    server.client().expect(&[("PING", "+PONG\r\n")]);
}

#[test]
fn refusals_are_logged() {
    let server = Server::start();
    let mut admin = server.client();
    admin.expect(&[("ACL SETUSER u on >pw ~a +@all -keys", "+OK\r\n")]);
    let mut user = client_of(&server, "u");
    for line in ["TS.GET b", "TS.GET b", "KEYS *"] {
        assert!(user.ask(line).starts_with("-NOPERM"));
    }
    let log = admin.ask("ACL LOG 1");
    for part in [
        "*1\r\n*20\r\n$5\r\ncount\r\n:1\r\n$6\r\nreason\r\n$7\r\ncommand\r\n$7\r\ncontext\r\n$8\r\ntoplevel\r\n",
        "$6\r\nobject\r\n$4\r\nkeys\r\n$8\r\nusername\r\n$1\r\nu\r\n$11\r\nage-seconds\r\n",
        " user=u ",
        "$8\r\nentry-id\r\n:1\r\n",
    ] {
        assert!(log.contains(part), "{part} in {log}");
    }
    let log = admin.ask("ACL LOG");
    assert!(log.starts_with("*2\r\n"));
    assert!(
        log.contains("count\r\n:2\r\n$6\r\nreason\r\n$3\r\nkey\r\n"),
        "{log}"
    );
}

#[test]
fn a_dry_run_runs_nothing() {
    let server = Server::start();
    let mut client = server.client();
    let denied = |text: &str| bulk(&format!("User lim has no permissions to {text}"));
    client.expect(&[
        (
            "ACL SETUSER lim on nopass ~a* %R~r* %W~w* +@all -config|set",
            "+OK\r\n",
        ),
        ("ACL DRYRUN lim ts.get a1", "+OK\r\n"),
        ("ACL DRYRUN lim ts.get b", &denied("access the 'b' key")),
        ("ACL DRYRUN lim ts.get w1", &denied("access the 'w1' key")),
        (
            "ACL DRYRUN lim ts.add r1 1 1",
            &denied("access the 'r1' key"),
        ),
        (
            "ACL DRYRUN lim config set a b",
            &denied("run the 'config|set' command"),
        ),
        ("ACL DRYRUN default ts.add k 1 1", "+OK\r\n"),
        ("EXISTS k", ":0\r\n"),
        ("ACL LOG", "*0\r\n"),
    ]);
    client.expect_errors(&[
        ("ACL DRYRUN nosuch ts.get a", "ERR User 'nosuch' not found"),
        (
            "ACL DRYRUN default nosuch",
            "ERR Command 'nosuch' not found",
        ),
        (
            "ACL DRYRUN default config nosuch",
            "ERR Command 'config' not found",
        ),
        (
            "ACL DRYRUN default ts.get",
            "ERR wrong number of arguments for 'ts.get' command",
        ),
    ]);
}

#[test]
fn users_survive_in_the_acl_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("users.acl");
    let option = path.to_str().unwrap();
    std::fs::write(
        &path,
        "user bob on >pw ~b* +@all\nuser eve on >pw ~e* +@all\n",
    )
    .unwrap();
    let server = Server::with(&["--wal", "off", "--aclfile", option, "--requirepass", "sec"]);
    let mut admin = server.client();
    admin.expect(&[
        ("AUTH sec", "+OK\r\n"),
        (
            "ACL USERS",
            "*3\r\n$3\r\nbob\r\n$7\r\ndefault\r\n$3\r\neve\r\n",
        ),
    ]);
    let mut bob = client_of(&server, "bob");
    let mut eve = client_of(&server, "eve");
    admin.expect(&[
        ("ACL SETUSER new on >pw +ping", "+OK\r\n"),
        ("ACL SAVE", "+OK\r\n"),
    ]);
    let saved = std::fs::read_to_string(&path).unwrap();
    assert_eq!(saved.lines().count(), 4, "{saved}");
    assert!(
        !saved.contains("pw") && saved.contains("user new on sanitize-payload #"),
        "{saved}"
    );

    std::fs::write(&path, format!("{saved}user x +nosuch\n")).unwrap();
    let refused = admin.ask("ACL LOAD");
    let expected = format!(
        "-ERR {option}:5: Error in applying operation '+nosuch': Unknown command or category name in \
         ACL. WARNING: ACL errors detected, no change to the previously active ACL rules was \
         performed\r\n"
    );
    assert_eq!(refused, expected);
    bob.expect(&[("TS.ADD b 1 1", ":1\r\n")]);

    std::fs::write(&path, saved.replace("~e*", "~f*")).unwrap();
    admin.expect(&[("ACL LOAD", "+OK\r\n"), ("PING", "+PONG\r\n")]);
    // One who changed logs in anew, one who did not goes on.
    bob.expect(&[("TS.ADD b 2 2", ":2\r\n")]);
    eve.send(&crate::harness::encoded("PING"));
    assert_eq!(eve.rest(), b"");
    let (ended_well, _) = server.terminate();
    assert!(ended_well);
    let server = Server::with(&["--wal", "off", "--aclfile", option]);
    client_of(&server, "new").expect(&[("PING", "+PONG\r\n")]);
}

#[test]
fn a_cluster_client_finds_one_node() {
    let server = Server::start();
    let mut client = server.client();
    let (host, port) = server.address().rsplit_once(':').unwrap();
    let slots = client.ask("CLUSTER SLOTS");
    let expected = format!(
        "*1\r\n*3\r\n:0\r\n:16383\r\n*4\r\n{}:{port}\r\n$40\r\n",
        bulk(host)
    );
    assert!(slots.starts_with(&expected), "{slots}");
    let id = client.ask("CLUSTER MYID");
    let id = id.lines().nth(1).unwrap();
    let nodes = client.ask("CLUSTER NODES");
    let line = format!("{id} {host}:{port}@0 myself,master - 0 0 0 connected 0-16383\n");
    assert!(nodes.contains(&line), "{nodes}");
    assert!(client.ask("CLUSTER SHARDS").contains(id));
    assert!(client.ask("CLUSTER INFO").contains("cluster_state:ok\r\n"));
}

#[test]
fn parameters_of_the_start_cannot_be_set() {
    let server = Server::start();
    let mut client = server.client();
    for name in [
        "ts-num-threads",
        "ts-libmr-protocol",
        "ts-topology-events",
        "aclfile",
    ] {
        let refused = format!(
            "-ERR CONFIG SET failed (possibly related to argument '{name}') - can't set immutable \
             config\r\n"
        );
        // The good one beside it is not set either.
        let line = format!("CONFIG SET timeout 77 {name} 1");
        assert_eq!(client.ask(&line), refused);
        client.expect(&[("CONFIG GET timeout", "*2\r\n$7\r\ntimeout\r\n$1\r\n0\r\n")]);
        assert!(
            client
                .ask(&format!("CONFIG GET {name}"))
                .starts_with("*2\r\n")
        );
    }
}

#[test]
fn without_an_acl_file_nothing_is_saved() {
    let server = Server::with(&[
        "--wal",
        "off",
        "--user",
        "al on >pw +ping",
        "--user",
        "bo off",
    ]);
    let mut client = server.client();
    client.expect(&[(
        "ACL USERS",
        "*3\r\n$2\r\nal\r\n$2\r\nbo\r\n$7\r\ndefault\r\n",
    )]);
    for line in ["ACL SAVE", "ACL LOAD"] {
        let refused = client.ask(line);
        assert!(
            refused.starts_with("-ERR This Redis instance is not configured to use an ACL file.")
        );
    }
    client_of(&server, "al").expect(&[("PING", "+PONG\r\n")]);
}
