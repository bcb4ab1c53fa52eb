//! The permission compiler against an evaluator that walks the rules.

use crate::acl::{BadRule, Denied, Request, User, category, file, join_selectors, split};
use crate::base::glob::Glob;
use crate::command::catalogue::CATALOGUE;
use crate::command::registry::COMMANDS as REGISTRY;
use latewood_engine::io::sim::seed;

/// Numbers that look random and follow from a seed: splitmix64,
/// <https://prng.di.unimi.it/splitmix64.c>.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((z ^ (z >> 31)) % end as u64).unwrap()
    }

    fn pick<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len())]
    }
}

const RULES: &[&str] = &[
    "+@all",
    "-@all",
    "allcommands",
    "nocommands",
    "+@read",
    "-@read",
    "+@write",
    "-@write",
    "+@admin",
    "-@dangerous",
    "+@timeseries",
    "-@timeseries",
    "+@connection",
    "+ts.add",
    "-ts.add",
    "+ts.madd",
    "-ts.madd",
    "+ts.get",
    "-ts.get",
    "+client",
    "-client",
    "+client|id",
    "-client|id",
    "+config|get",
    "-config|set",
    "+CONFIG",
    "-config",
    "+get",
    "-hset",
    "allkeys",
    "resetkeys",
    "~*",
    "~a*",
    "~b",
    "%R~a*",
    "%W~a*",
    "%R~c?",
    "%W~c?",
    "%RW~b",
    "%R~*",
    "%W~*",
    "allchannels",
    "resetchannels",
    "&*",
    "&n*",
    "&m",
];
const COMMANDS: &[&str] = &[
    "ts.add",
    "ts.get",
    "ts.range",
    "client|id",
    "client|list",
    "config|get",
    "config|set",
    "ping",
    "flushall",
    "keys",
    "command",
    "command|docs",
];
const KEYS: &[&str] = &["a", "ab", "b", "c1", "c12", ""];
const CHANNELS: &[&str] = &["n", "news", "m", "n*", "x"];

/// What the rules of one selector say of one command, key or channel.
struct Naive<'a>(&'a [&'a str]);

impl Naive<'_> {
    fn command(&self, full_name: &str) -> bool {
        let number = CATALOGUE.number(full_name).unwrap();
        let mut allowed = false;
        for rule in self.0 {
            let rule = rule.to_ascii_lowercase();
            let rule = match rule.as_str() {
                "allcommands" => "+@all",
                "nocommands" => "-@all",
                rule => rule,
            };
            let (sign, name) = match rule.as_bytes()[0] {
                b'+' => (true, &rule[1..]),
                b'-' => (false, &rule[1..]),
                _ => continue,
            };
            let applies = match name.strip_prefix('@') {
                Some("all") => true,
                Some(name) => {
                    let wanted = category::find(name.as_bytes()).unwrap();
                    CATALOGUE.entries()[number].categories & wanted != 0
                }
                None => full_name == name || full_name.starts_with(&format!("{name}|")),
            };
            if applies {
                allowed = sign;
            }
        }
        allowed
    }

    /// Whether one pattern allows all that is asked of the key. Equal
    /// patterns are one, and a rule after "everything" is an error.
    fn key(&self, key: &str, reads: bool, writes: bool) -> bool {
        let mut all = false;
        let mut patterns: Vec<(&str, bool, bool)> = Vec::new();
        for rule in self.0 {
            let (pattern, read, write) = match *rule {
                "allkeys" | "~*" => {
                    all = true;
                    continue;
                }
                "resetkeys" => {
                    all = false;
                    patterns.clear();
                    continue;
                }
                rule => match rule.split_once('~') {
                    Some(("", pattern)) => (pattern, true, true),
                    Some((flags, pattern)) => (pattern, flags.contains('R'), flags.contains('W')),
                    None => continue,
                },
            };
            if !all {
                patterns.push((pattern, read, write));
            }
        }
        all || patterns.iter().any(|(pattern, _, _)| {
            let same = || patterns.iter().filter(|(other, _, _)| other == pattern);
            Glob::new(pattern.as_bytes())
                .unwrap()
                .matches(key.as_bytes())
                && (!reads || same().any(|(_, read, _)| *read))
                && (!writes || same().any(|(_, _, write)| *write))
        })
    }

    fn channel(&self, channel: &str, is_pattern: bool) -> bool {
        let mut patterns: Vec<&str> = Vec::new();
        for rule in self.0 {
            match *rule {
                "allchannels" => patterns = vec!["*"],
                "resetchannels" => patterns.clear(),
                rule => patterns.extend(rule.strip_prefix('&')),
            }
        }
        patterns.iter().any(|pattern| {
            let is_all = *pattern == "*";
            is_all
                || if is_pattern {
                    *pattern == channel
                } else {
                    Glob::new(pattern.as_bytes())
                        .unwrap()
                        .matches(channel.as_bytes())
                }
        })
    }
}

fn rules(words: &[&str]) -> Vec<Vec<u8>> {
    words.iter().map(|word| word.as_bytes().to_vec()).collect()
}

/// `user` against what its selectors' rules say, and a user made of its line.
fn compare(user: &User, selectors: &[Vec<&str>]) {
    let line = user.describe();
    let again = file::parse(&line, "line", &CATALOGUE)
        .unwrap()
        .pop()
        .unwrap();
    assert_eq!(again.describe(), line);
    for command in COMMANDS {
        for key in KEYS {
            for (reads, writes) in [(false, false), (true, false), (false, true), (true, true)] {
                for (channel, is_pattern) in CHANNELS.iter().zip([false, true, false, true, false])
                {
                    let request = Request {
                        number: CATALOGUE.number(command).unwrap(),
                        keys: vec![(key.as_bytes(), reads, writes)],
                        channels: vec![channel.as_bytes()],
                        channels_are_patterns: is_pattern,
                    };
                    let expected = selectors.iter().any(|rules| {
                        let naive = Naive(rules);
                        naive.command(command)
                            && naive.key(key, reads, writes)
                            && naive.channel(channel, is_pattern)
                    });
                    for user in [user, &again] {
                        assert_eq!(
                            user.check(&request).is_ok(),
                            expected,
                            "{command} {key:?} {reads} {writes} {channel} of {selectors:?}"
                        );
                    }
                }
            }
        }
    }
}

/// What is asked on the fast path against what is asked of every command.
fn compare_adds(user: &User) {
    let may_run = |name: &str, keys: &[&str]| {
        let spec = REGISTRY.find(name.as_bytes()).unwrap();
        let access = spec.keys.0[0].access.of(spec.flags);
        let keys = keys.iter();
        let request = Request {
            number: CATALOGUE.number(name).unwrap(),
            keys: keys
                .map(|key| (key.as_bytes(), access.reads(), access.writes()))
                .collect(),
            channels: Vec::new(),
            channels_are_patterns: false,
        };
        user.check(&request).is_ok()
    };
    let rules = String::from_utf8_lossy(&user.describe()).into_owned();
    for key in KEYS {
        let allowed = user.may_run_add(key.as_bytes());
        assert_eq!(allowed, may_run("ts.add", &[key]), "{key:?} of {rules}");
        for other in KEYS {
            let keys = [*key, *other];
            let allowed = user.may_run_madd(keys.iter().map(|key| key.as_bytes()));
            assert_eq!(allowed, may_run("ts.madd", &keys), "{keys:?} of {rules}");
        }
    }
}

#[test]
fn compiled_permissions_say_what_the_rules_say() {
    let mut numbers = Numbers(seed());
    for _ in 0..150 {
        let mut selectors: Vec<Vec<&str>> = Vec::new();
        let mut user = User::new(b"u", 0, &CATALOGUE);
        for at in 0..1 + numbers.below(3) {
            let mut taken = Vec::new();
            for _ in 0..numbers.below(12) {
                let word = numbers.pick(RULES);
                let attempt = [&taken[..], &[word]].concat();
                if User::new(b"x", 0, &CATALOGUE)
                    .with(&rules(&attempt))
                    .is_ok()
                {
                    taken = attempt;
                }
            }
            let words = if at == 0 {
                rules(&taken)
            } else {
                vec![format!("({})", taken.join(" ")).into_bytes()]
            };
            user = user.with(&words).unwrap();
            selectors.push(taken);
        }
        compare(&user, &selectors);
        compare_adds(&user);
    }
}

#[test]
fn an_unrestricted_user_is_known_as_such() {
    for (words, unrestricted, adds) in [
        (&["+@all", "~*", "&*"][..], true, true),
        (&["+@all", "~*"], false, true),
        (&["+@all", "~*", "&*", "-flushall"], false, true),
        (&["+@all", "~*", "&*", "-ts.madd"], false, false),
        (&["+@all", "~a*", "&*"], false, false),
        (&["(+@all ~* &*)"], true, true),
        (&["(+ts.add ~*)", "(+ts.madd ~*)"], false, true),
        (&["+@all", "%R~*", "&*"], false, false),
    ] {
        let user = User::new(b"u", 0, &CATALOGUE).with(&rules(words)).unwrap();
        assert_eq!(
            (user.is_unrestricted, user.adds_anywhere),
            (unrestricted, adds),
            "{words:?}"
        );
    }
}

#[test]
fn the_nearest_refusal_is_told() {
    let words = ["-@all", "(+ts.get ~a*)", "(+ts.get +ts.add ~b*)"];
    let user = User::new(b"u", 0, &CATALOGUE).with(&rules(&words)).unwrap();
    let refusal = |command: &str, key: &'static str| {
        let request = Request {
            number: CATALOGUE.number(command).unwrap(),
            keys: vec![(key.as_bytes(), true, false)],
            channels: Vec::new(),
            channels_are_patterns: false,
        };
        let refusal = user.check(&request).err();
        refusal.map(|refusal| (refusal.what, refusal.object))
    };
    assert_eq!(refusal("ts.get", "a1"), None);
    assert_eq!(refusal("ts.add", "a1"), Some((Denied::Key, b"a1".to_vec())));
    assert_eq!(
        refusal("flushall", "a1"),
        Some((Denied::Command, b"flushall".to_vec()))
    );
}

#[test]
fn words_of_selectors_are_put_together() {
    let join = |line: &'static str| join_selectors(split(line.as_bytes()));
    let joined = join("on (~a +get) ( ~b ) +x").unwrap();
    assert_eq!(joined, rules(&["on", "(~a +get)", "( ~b )", "+x"]));
    assert_eq!(
        join("on (~a +get"),
        Err(BadRule::Unmatched(b"(~a".to_vec()))
    );
}

#[test]
fn rules_that_a_file_could_not_hold_are_refused() {
    let fits = |word: &str| {
        let user = User::new(b"u", 0, &CATALOGUE).with(&rules(&[word]));
        user.map(|user| {
            let line = user.describe();
            let again = file::parse(&line, "line", &CATALOGUE).unwrap();
            again.len() == 1 && again[0].describe() == line
        })
    };
    for word in [
        "+get|x y",
        "+get|x\nuser other on nopass ~* +@all",
        "-get|x\u{b}y",
        "(~a) +ts.get)",
        "(~a) +@all) ~*)",
        "(~a))",
    ] {
        assert!(fits(word).is_err(), "{word:?}");
    }
    for word in ["+get|x", "(~a( +ts.get)", "( ~a)", "~a)"] {
        assert_eq!(fits(word), Ok(true), "{word:?}");
    }
}

#[test]
fn a_file_names_all_its_wrong_lines() {
    let text = "user bob on +nosuch\nuser\nfoo bar\n\nuser x\nuser x on\nuser y (on\n";
    let errors = file::parse(text.as_bytes(), "f", &CATALOGUE).unwrap_err();
    for part in [
        "f:1: Error in applying operation '+nosuch': Unknown command or category name in ACL. ",
        "f:2 should start with user keyword followed by the username. ",
        "f:3 should start",
        "WARNING: Duplicate user 'x' found on line 6. ",
        "f:7: Unmatched parenthesis in selector definition. ",
    ] {
        assert!(errors.contains(part), "{part} in {errors}");
    }
}

#[test]
fn a_saved_file_reads_back_and_belongs_to_its_owner() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("users.acl");
    let text = "user a on >secret ~x* %R~y* &c +@read -ts.get (+ts.add ~z)\nuser b off\n";
    let users = file::parse(text.as_bytes(), "text", &CATALOGUE).unwrap();
    file::save(&path, users.iter()).unwrap();
    let again = file::load(&path, &CATALOGUE).unwrap();
    let lines = |users: &[User]| users.iter().map(User::describe).collect::<Vec<_>>();
    assert_eq!(lines(&again), lines(&users));
    assert!(again[0].accepts(b"secret") && !again[0].accepts(b"Secret"));
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    let missing = dir.path().join("no/users.acl");
    assert!(file::save(&missing, users.iter()).is_err());
}
