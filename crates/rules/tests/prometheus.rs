//! Prometheus' own files of rules and of their tests, read from its module: what passes there must
//! pass here, and what fails there must fail. Needs Go, unless LEFT_OUT names it.

use latewood_rules::RuleFile;
use latewood_rules::unit::{Options, test};
use regex::Regex;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The source of Prometheus, of the version that the oracle of PromQL uses.
fn source() -> Option<PathBuf> {
    if std::env::var("LEFT_OUT").is_ok_and(|tools| tools.split(' ').any(|tool| tool == "go")) {
        println!("left out: go is missing or too old");
        return None;
    }
    let oracle = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/promql/oracle");
    let go = |args: &[&str]| {
        let ran = Command::new("go").args(args).current_dir(&oracle).output();
        let ran = ran.expect("go starts; LEFT_OUT=go leaves this test out");
        assert!(
            ran.status.success(),
            "go {args:?}: {}",
            String::from_utf8_lossy(&ran.stderr)
        );
        String::from_utf8(ran.stdout).unwrap()
    };
    let module = "github.com/prometheus/prometheus";
    go(&["mod", "download", module]);
    Some(PathBuf::from(
        go(&["list", "-m", "-f", "{{.Dir}}", module]).trim(),
    ))
}

/// Files of unit tests and whether they pass; the expression finds the tests that are run.
const UNIT_TESTS: [(&str, &str, bool); 19] = [
    ("long-period.yml", "", true),
    ("bad-input-series.yml", "", false),
    ("bad-promql.yml", "", false),
    ("bad-rules-syntax-test.yml", "", false),
    ("bad-rules-error-test.yml", "", false),
    ("failing.yml", "", false),
    ("at-modifier-test.yml", "", true),
    ("negative-offset-test.yml", "", true),
    ("experimental-functions-test.yml", "", true),
    ("no-test-group-interval.yml", "", true),
    ("start-time-test.yml", "", true),
    ("rules_run.yml", "", false),
    ("rules_run.yml", "correct", true),
    ("rules_run.yml", "wrong", false),
    ("rules_run.yml", "correct|wrong", false),
    ("rules_run_no_fuzzy.yml", "", false),
    ("rules_run_fuzzy.yml", "correct", true),
    ("rules_run_fuzzy.yml", "wrong", false),
    ("rules_run_extrafields.yml", "", false),
];

#[test]
fn unit_tests_come_to_what_they_come_to_there() {
    let Some(source) = source() else {
        return;
    };
    let folder = source.join("cmd/promtool/testdata");
    for (file, run, passes) in UNIT_TESTS {
        let options = Options {
            run: (!run.is_empty()).then(|| Regex::new(run).unwrap()),
            ..Options::default()
        };
        let outcome = test(&folder.join(file), &options);
        assert_eq!(outcome.is_success(), passes, "{file} {run}: {outcome:#?}");
    }
    let options = Options {
        ignores_unknown: true,
        ..Options::default()
    };
    let outcome = test(&folder.join("rules_run_extrafields.yml"), &options);
    assert!(outcome.is_success(), "{outcome:#?}");
}

/// Its first test has native histograms, which are refused in words; all others pass.
#[test]
fn unit_tests_without_histograms_pass() {
    let Some(source) = source() else {
        return;
    };
    let outcome = test(
        &source.join("cmd/promtool/testdata/unittest.yml"),
        &Options::default(),
    );
    assert!(outcome.cases.len() > 3);
    for (at, case) in outcome.cases.iter().enumerate() {
        let needs_histograms = case
            .failures
            .iter()
            .all(|failure| failure.contains("native histograms are not supported"));
        assert_eq!(!case.failures.is_empty(), at == 0, "{case:#?}");
        assert!(needs_histograms, "{case:#?}");
    }
}

#[test]
fn good_files_are_good_and_bad_ones_bad() {
    let Some(source) = source() else {
        return;
    };
    let mut good = 0;
    for folder in ["model/rulefmt/testdata", "rules/fixtures"] {
        for file in std::fs::read_dir(source.join(folder)).unwrap() {
            let path = file.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            // One of them is wrong by Prometheus' older names of labels alone.
            if !name.ends_with(".yaml") || name.starts_with("legacy_validation") {
                continue;
            }
            let is_bad = name.contains(".bad.") || name.contains("invalid_rules");
            let parsed = RuleFile::parse(&std::fs::read_to_string(&path).unwrap(), false);
            assert_eq!(parsed.is_err(), is_bad, "{name}: {parsed:#?}");
            good += usize::from(!is_bad);
        }
    }
    assert!(good > 10);
}
