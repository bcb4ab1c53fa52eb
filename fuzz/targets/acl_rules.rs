//! Rules of ACL SETUSER, separated by zeros: what is accepted can be written to the ACL file and
//! read back as the same user.
#![cfg_attr(fuzzing, no_main)]

use latewood_server::fuzz::acl_rules;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let words: Vec<_> = bytes.split(|byte| *byte == 0).collect();
    acl_rules(&words);
});
