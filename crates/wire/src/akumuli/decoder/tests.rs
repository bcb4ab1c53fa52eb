//! Lines in, rows and errors out.

use super::*;

/// The messages and errors of the lines of `input`.
fn read(input: &str) -> Vec<String> {
    let mut decoder = Decoder::new();
    let mut found = Vec::new();
    for line in input.lines() {
        match decoder.line(line.as_bytes()) {
            Ok(None) => {}
            Ok(Some(row)) => found.push(format!(
                "{} {} @{}{} {:?}",
                String::from_utf8_lossy(row.series.metrics),
                String::from_utf8_lossy(row.series.tags),
                row.timestamp_ms,
                if row.rounded { "~" } else { "" },
                row.values
            )),
            Err(error) => found.push(error.to_string()),
        }
    }
    found
}

const GOOD: &str = "+good h=a\n:2000000\n:7\n";
const GOOD_ROW: &str = "good h=a @2 [7.0]";

#[test]
fn messages_in_every_form() {
    assert_eq!(
        read("+cpu host=a\n:1418224205000000000\n+24.3\n+cpu host=a\n+20141210T155005\n:-31\n"),
        [
            "cpu host=a @1418224205000 [24.3]",
            "cpu host=a @1418226605000 [-31.0]"
        ]
    );
    assert_eq!(
        read("+u|s host=a\n:1000001\n*2\n+1.5\n:2\n+u h=a\n:1\n*1\n+1\n"),
        ["u|s host=a @1~ [1.5, 2.0]", "u h=a @0~ [1.0]"]
    );
}

#[test]
fn a_dictionary_stands_for_series_lines_wherever_it_comes() {
    assert_eq!(
        read(
            "*4\n+cpu host=a\n:1\n+u|s host=b\n:2\n:1\n:5000000\n+1\n*2\n+m h=c\n:3\n\
              :2\n:6000000\n*2\n+2\n+3\n:3\n:7000000\n+4\n*0\n:9\n"
        ),
        [
            "cpu host=a @5 [1.0]",
            "u|s host=b @6 [2.0, 3.0]",
            "m h=c @7 [4.0]",
            "id 9 is not in the dictionary",
        ]
    );
}

#[test]
fn a_bad_message_costs_itself_alone() {
    for (bad, error) in [
        ("+cpu host=a\n:yesterday\n+1\n", MessageError::Timestamp),
        ("+cpu host=a\n+2014-12-10\n+1\n", MessageError::Timestamp),
        ("+cpu host=a\n:1\n+fast\n", MessageError::Value),
        ("+cpu host=a\n:1\n+1e999\n", MessageError::Value),
        ("+cpu host=a\n:1\n:1.5\n", MessageError::Value),
        ("+u|s host=a\n:1\n*2\n+x\n+y\n", MessageError::Value),
        ("+u|s host=a\n:1\n+1\n", MessageError::ArrayExpected),
        (
            "+u|s host=a\n:1\n*3\n+1\n+2\n+3\n",
            MessageError::ArraySize {
                expected: 2,
                found: 3,
            },
        ),
        (
            "+u|s host=a\n:1\n*0\n",
            MessageError::ArraySize {
                expected: 2,
                found: 0,
            },
        ),
        (
            "+u|s host=a\n:1\n*5000\n+1\n",
            MessageError::ArrayTooLong(5000),
        ),
        ("+cpu\n:1\n+1\n", MessageError::Series),
        (
            "+!boot host=a\n:1\n+started with a=b\n",
            MessageError::Event,
        ),
        ("+cpu host=a\n", MessageError::CutShort),
        ("+cpu host=a\n:1\n", MessageError::CutShort),
        ("\n", MessageError::Id),
        ("garbage\n", MessageError::Id),
        ("garbage\n:1\n+1\n", MessageError::Id),
        ("*3\n", MessageError::OddDictionary),
        ("*2\n:1\n:1\n", MessageError::Entry),
        ("*99999998\n", MessageError::ArrayTooLong(99_999_998)),
    ] {
        let found = read(&format!("{GOOD}{bad}{GOOD}"));
        let expected = [GOOD_ROW.to_owned(), error.to_string(), GOOD_ROW.to_owned()];
        assert_eq!(found, expected, "{bad:?}");
    }
}

#[test]
fn a_sender_of_numbers_is_found_again_without_a_wrong_sample() {
    let dictionary = "*4\n+a h=x\n:1\n+b h=x\n:2\n";
    let messages = ":1\n:1418224205000000000\n:2\n:2\n:1418224206000000000\n:1\n";
    // An extra line shifts all later ones; `:1` and `:2` are values as well as
    // numbers of the dictionary.
    let found = read(&format!("{dictionary}{messages}:77\n{messages}{messages}"));
    let pair = ["a h=x @1418224205000 [2.0]", "b h=x @1418224206000 [1.0]"];
    let mut expected = pair.to_vec();
    expected.push("id 77 is not in the dictionary");
    expected.extend(pair);
    expected.extend(pair);
    assert_eq!(found, expected);
}

#[test]
fn a_bad_entry_leaves_the_rest_of_the_dictionary() {
    assert_eq!(
        read("*4\n+notags\n:1\n+b h=x\n:2\n:2\n:1000000\n+3\n:1\n"),
        [
            "invalid series name format",
            "b h=x @1 [3.0]",
            "id 1 is not in the dictionary"
        ]
    );
    assert_eq!(
        read("*4\n+a h=x\n:1\n+b h=x\n:1\n:1\n:1000000\n+3\n"),
        [
            "id 1 already names another series in the dictionary",
            "a h=x @1 [3.0]"
        ]
    );
}
