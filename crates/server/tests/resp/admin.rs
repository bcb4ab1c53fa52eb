//! COMMAND, CONFIG, INFO, TIME, SAVE and their like, SHUTDOWN, LATEWOOD.

use crate::harness::Server;

#[test]
fn command_describes_the_commands() {
    let server = Server::start();
    let mut client = server.client();
    let ts_get = "*10\r\n$6\r\nts.get\r\n:-2\r\n*2\r\n+readonly\r\n+module\r\n:1\r\n:1\r\n:1\r\n\
        *3\r\n+@read\r\n+@slow\r\n+@timeseries\r\n*0\r\n*1\r\n*6\r\n$5\r\nflags\r\n*2\r\n+RO\r\n\
        +access\r\n$12\r\nbegin_search\r\n*4\r\n$4\r\ntype\r\n$5\r\nindex\r\n$4\r\nspec\r\n*2\r\n\
        $5\r\nindex\r\n:1\r\n$9\r\nfind_keys\r\n*4\r\n$4\r\ntype\r\n$5\r\nrange\r\n$4\r\nspec\r\n\
        *6\r\n$7\r\nlastkey\r\n:0\r\n$7\r\nkeystep\r\n:1\r\n$5\r\nlimit\r\n:0\r\n*0\r\n";
    client.expect(&[
        (
            "COMMAND INFO TS.GET nosuch",
            &format!("*2\r\n{ts_get}$-1\r\n"),
        ),
        ("COMMAND DOCS nosuch", "*0\r\n"),
        (
            "COMMAND DOCS time",
            "*2\r\n$4\r\ntime\r\n*8\r\n$7\r\nsummary\r\n$57\r\nReturns the time of the server: seconds \
             and microseconds.\r\n$5\r\nsince\r\n$5\r\n2.6.0\r\n$10\r\ncomplexity\r\n$4\r\nO(1)\r\n$5\r\ngroup\r\n$6\r\nserver\r\n",
        ),
        ("COMMAND GETKEYS ts.add k 1 2", "*1\r\n$1\r\nk\r\n"),
        (
            "COMMAND GETKEYS ts.madd a 1 1 b 2 2",
            "*2\r\n$1\r\na\r\n$1\r\nb\r\n",
        ),
        (
            "COMMAND GETKEYS del a b c",
            "*3\r\n$1\r\na\r\n$1\r\nb\r\n$1\r\nc\r\n",
        ),
        (
            "COMMAND LIST FILTERBY PATTERN ts.ad*",
            "*1\r\n$6\r\nts.add\r\n",
        ),
        ("COMMAND LIST FILTERBY ACLCAT nosuch", "*0\r\n"),
        (
            "COMMAND GETKEYSANDFLAGS del a",
            "*1\r\n*2\r\n$1\r\na\r\n*2\r\n+RM\r\n+delete\r\n",
        ),
        (
            "MODULE LIST",
            "*1\r\n*8\r\n$4\r\nname\r\n$10\r\ntimeseries\r\n$3\r\nver\r\n:81000\r\n$4\r\npath\r\n\
             $8\r\nlatewood\r\n$4\r\nargs\r\n*0\r\n",
        ),
        ("CLUSTER KEYSLOT a{foo}b", ":12182\r\n"),
    ]);
}

#[test]
fn command_counts_and_lists_the_same_commands() {
    let server = Server::start();
    let mut client = server.client();
    let count: usize = client
        .ask("COMMAND COUNT")
        .trim_start_matches(':')
        .trim()
        .parse()
        .unwrap();
    assert!(
        client
            .ask("COMMAND")
            .starts_with(&format!("*{count}\r\n*10\r\n"))
    );
    assert!(
        client
            .ask("COMMAND LIST")
            .starts_with(&format!("*{count}\r\n"))
    );
}

#[test]
fn command_refuses_wrong_subcommands_in_words() {
    let server = Server::start();
    let mut client = server.client();
    client.expect_errors(&[
        (
            "COMMAND foo",
            "ERR unknown subcommand 'foo'. Try COMMAND HELP.",
        ),
        (
            "COMMAND GETKEYS",
            "ERR wrong number of arguments for 'command|getkeys' command",
        ),
        ("COMMAND GETKEYS nosuch", "ERR Invalid command specified"),
        (
            "COMMAND GETKEYS ping",
            "ERR The command has no key arguments",
        ),
        ("COMMAND LIST foo", "ERR syntax error"),
        (
            "COMMAND COUNT x",
            "ERR wrong number of arguments for 'command|count' command",
        ),
    ]);
}

#[test]
fn config_reads_and_sets() {
    let server = Server::start();
    let mut client = server.client();
    client.expect(&[
        ("CONFIG GET ts-duplicate-policy", "*2\r\n$19\r\nts-duplicate-policy\r\n$5\r\nblock\r\n"),
        ("CONFIG GET save databases", "*4\r\n$9\r\ndatabases\r\n$1\r\n1\r\n$4\r\nsave\r\n$0\r\n\r\n"),
        ("CONFIG GET nosuch", "*0\r\n"),
        ("CONFIG SET ts-duplicate-policy LAST ts-chunk-size-bytes 128", "+OK\r\n"),
        ("CONFIG SET ts-encoding uncompressed ts-retention-policy 77", "+OK\r\n"),
        ("CONFIG SET ts-ignore-max-time-diff 3 ts-ignore-max-val-diff 0.5", "+OK\r\n"),
        ("CONFIG GET ts-[ce][hno][cmu]*",
         "*8\r\n$16\r\nts-compatibility\r\n$4\r\n8.10\r\n$11\r\nts-encoding\r\n$12\r\nuncompressed\r\n$19\r\nts-chunk-size-bytes\r\n$3\r\n128\r\n\
          $20\r\nts-compaction-policy\r\n$0\r\n\r\n"),
        ("TS.ADD k 1 1", ":1\r\n"),
        ("TS.ADD k 1 2", ":1\r\n"),
        ("TS.ADD k 3 1.9", ":1\r\n"),
        ("TS.GET k", "*2\r\n:1\r\n+2\r\n"),
        ("CONFIG RESETSTAT", "+OK\r\n"),
    ]);
    let info = client.ask("TS.INFO k");
    for part in [
        "+retentionTime\r\n:77\r\n",
        "+chunkSize\r\n:128\r\n",
        "+uncompressed\r\n",
        "+duplicatePolicy\r\n+last\r\n",
        "+ignoreMaxTimeDiff\r\n:3\r\n",
    ] {
        assert!(info.contains(part), "{part} in {info}");
    }
}

#[test]
fn config_refuses_in_words_and_changes_nothing() {
    let server = Server::start();
    let mut client = server.client();
    let failed = |name: &str, reason: &str| {
        format!("ERR CONFIG SET failed (possibly related to argument '{name}') - {reason}")
    };
    let range =
        "Invalid value for `ts-chunk-size-bytes`. Value must be in the range [48 .. 1048576]";
    let policy = failed("ts-duplicate-policy", "Invalid duplicate policy: x");
    client.expect_errors(&[
        (
            "CONFIG SET",
            "ERR wrong number of arguments for 'config|set' command",
        ),
        (
            "CONFIG SET a 1 b",
            "ERR wrong number of arguments for 'config|set' command",
        ),
        (
            "CONFIG foo",
            "ERR unknown subcommand 'foo'. Try CONFIG HELP.",
        ),
        (
            "CONFIG SET nosuch 1",
            "ERR Unknown option or number of arguments for CONFIG SET - 'nosuch'",
        ),
        ("CONFIG SET ts-duplicate-policy x", &policy),
        (
            "CONFIG SET ts-encoding x",
            &failed("ts-encoding", "Invalid encoding: x"),
        ),
        (
            "CONFIG SET ts-chunk-size-bytes 47",
            &failed("ts-chunk-size-bytes", range),
        ),
        (
            "CONFIG SET databases 3",
            &failed("databases", "can't set immutable config"),
        ),
        (
            "CONFIG SET maxclients x",
            &failed("maxclients", "argument couldn't be parsed into an integer"),
        ),
        (
            "CONFIG SET timeout -1",
            &failed(
                "timeout",
                "argument must be between 0 and 2147483647 inclusive",
            ),
        ),
        (
            "CONFIG SET timeout 5 timeout 6",
            &failed("timeout", "duplicate parameter"),
        ),
        (
            "CONFIG SET protected-mode maybe",
            &failed("protected-mode", "argument must be 'yes' or 'no'"),
        ),
        ("CONFIG SET timeout 9 ts-duplicate-policy x", &policy),
    ]);
    client.expect(&[("CONFIG GET timeout", "*2\r\n$7\r\ntimeout\r\n$1\r\n0\r\n")]);
}

#[test]
fn info_counts_what_happened() {
    let server = Server::start();
    let mut client = server.client();
    client.expect(&[
        ("INFO nosuch", "$0\r\n\r\n"),
        ("TS.ADD k 10 1", ":10\r\n"),
        ("TS.ADD k 20 1", ":20\r\n"),
        ("TS.ADD k 15 1", ":15\r\n"),
        ("LATEWOOD SETTLE", "+OK\r\n"),
        ("LATEWOOD CLOCK ACCEPT", "+OK\r\n"),
        (
            "LATEWOOD CLOCK REFUSE",
            "-ERR unknown word 'REFUSE' after LATEWOOD CLOCK: expected ACCEPT. Try LATEWOOD HELP.\r\n",
        ),
        ("LATEWOOD MERGE PAUSE", "+OK\r\n"),
        ("LATEWOOD MERGE NOW", "-ERR TSDB: merging is paused\r\n"),
        ("LATEWOOD MERGE RESUME", "+OK\r\n"),
        ("LATEWOOD MERGE NOW", "+Merge started\r\n"),
        (
            "LATEWOOD MERGE LATER",
            "-ERR unknown word 'LATER' after LATEWOOD MERGE: expected NOW|PAUSE|RESUME|STATUS. Try \
             LATEWOOD HELP.\r\n",
        ),
        (
            "INFO keyspace",
            "$44\r\n# Keyspace\r\ndb0:keys=1,expires=0,avg_ttl=0\r\n\r\n",
        ),
    ]);
    assert_eq!(client.info("samples_appended"), 3);
    assert_eq!(client.info("late_samples_pending"), 0);
    assert_eq!(client.info("connected_clients"), 1);
    assert!(client.info("total_commands_processed") >= 7);
    let info = client.ask("INFO");
    let sections = [
        "Server",
        "Clients",
        "Memory",
        "Persistence",
        "Stats",
        "CPU",
        "Keyspace",
        "Latewood",
    ];
    for section in sections {
        assert!(info.contains(&format!("# {section}\r\n")), "{section}");
    }
    assert!(info.contains("redis_version:8.10.0\r\n") && info.contains("halted:no\r\n"));
    let cpu = client.ask("INFO cpu");
    assert!(cpu.contains("used_cpu_sys:") && !cpu.contains("# Memory"));
    assert!(server.client3().ask("INFO cpu").starts_with('='));
}

#[test]
fn time_and_saves_answer_as_redis_does() {
    let server = Server::with(&[]);
    let mut client = server.client();
    let time = client.ask("TIME");
    let seconds: u64 = time.split("\r\n").nth(2).unwrap().parse().unwrap();
    assert!(seconds.abs_diff(std::time::UNIX_EPOCH.elapsed().unwrap().as_secs()) < 60);
    client.expect(&[
        ("TS.ADD k 1 1", ":1\r\n"),
        ("SAVE", "+OK\r\n"),
        ("BGSAVE", "+Background saving started\r\n"),
        ("BGSAVE SCHEDULE", "+Background saving started\r\n"),
        ("WAITAOF 1 0 0", "*2\r\n:1\r\n:0\r\n"),
        ("WAIT 1 1", ":0\r\n"),
    ]);
    let saved: u64 = client
        .ask("LASTSAVE")
        .trim_start_matches(':')
        .trim()
        .parse()
        .unwrap();
    assert!(saved >= seconds);
    client.expect_errors(&[
        ("BGSAVE x", "ERR syntax error"),
        (
            "WAITAOF 2 0 0",
            "ERR value is out of range, value must between 0 and 1",
        ),
        (
            "WAITAOF x 0 0",
            "ERR value is not an integer or out of range",
        ),
        (
            "WAITAOF 0 -1 0",
            "ERR value is out of range, must be positive",
        ),
        ("WAITAOF 0 0 -1", "ERR timeout is negative"),
        ("WAIT x 0", "ERR value is not an integer or out of range"),
        ("WAIT 0 x", "ERR timeout is not an integer or out of range"),
        ("SHUTDOWN foo", "ERR syntax error"),
        ("SHUTDOWN NOSAVE SAVE", "ERR syntax error"),
        ("SHUTDOWN ABORT", "ERR No shutdown in progress."),
        (
            "LATEWOOD foo",
            "ERR unknown subcommand 'foo'. Try LATEWOOD HELP.",
        ),
    ]);
}

#[test]
fn without_a_log_waitaof_says_so() {
    let server = Server::start();
    server.client().expect(&[
        (
            "WAITAOF 1 0 0",
            "-ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled.\r\n",
        ),
        ("WAITAOF 0 0 0", "*2\r\n:0\r\n:0\r\n"),
        (
            "CONFIG GET appendonly",
            "*2\r\n$10\r\nappendonly\r\n$2\r\nno\r\n",
        ),
    ]);
}

#[test]
fn every_help_lists_its_subcommands() {
    let server = Server::start();
    let mut client = server.client();
    for (container, sub) in [
        ("CLIENT", "+DURABILITY [sync|interval|none]\r\n"),
        ("CONFIG", "+GET pattern [pattern ...]\r\n"),
        ("COMMAND", "+GETKEYS command [argument ...]\r\n"),
        ("LATEWOOD", "+SETTLE\r\n"),
    ] {
        let help = client.ask(&format!("{container} HELP"));
        assert!(help.contains(sub), "{sub} in {help}");
    }
}

#[test]
fn shutdown_ends_the_process_well() {
    let server = Server::start();
    let mut client = server.client();
    client.send(b"SHUTDOWN NOSAVE\r\n");
    assert_eq!(client.rest(), b"");
    assert!(server.wait());
}
