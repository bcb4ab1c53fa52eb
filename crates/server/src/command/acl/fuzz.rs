//! Rules of ACL SETUSER, for the fuzz target.

use crate::acl::{Request, User, file, join_selectors};
use crate::command::catalogue::CATALOGUE;

const KEYS: [&[u8]; 3] = [b"", b"a", b"a:1"];

/// Makes a user by these words. Its line in the ACL file makes the same user, and no other.
pub fn acl_rules(words: &[&[u8]]) {
    let rules = join_selectors(words.iter().copied());
    let user = rules.and_then(|rules| User::new(b"u", 0, &CATALOGUE).with(&rules));
    let Ok(user) = user else {
        return;
    };
    let line = user.describe();
    let again = file::parse(&line, "line", &CATALOGUE).expect("the file takes what it holds");
    assert_eq!(again.len(), 1, "one user is one line");
    let again = &again[0];
    assert_eq!(
        again.describe().escape_ascii().to_string(),
        line.escape_ascii().to_string()
    );
    assert_eq!(
        (user.is_unrestricted, user.adds_anywhere),
        (again.is_unrestricted, again.adds_anywhere)
    );
    for number in 0..CATALOGUE.entries().len() {
        for (key, writes) in KEYS.into_iter().flat_map(|key| [(key, false), (key, true)]) {
            for channels_are_patterns in [false, true] {
                let request = Request {
                    number,
                    keys: vec![(key, !writes, writes)],
                    channels: vec![key],
                    channels_are_patterns,
                };
                let allowed = user.check(&request).is_ok();
                assert_eq!(allowed, again.check(&request).is_ok());
                assert!(allowed || !user.is_unrestricted);
            }
        }
    }
}
