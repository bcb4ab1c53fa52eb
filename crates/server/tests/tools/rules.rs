//! `latewood check rules` and `latewood test rules`: words and exit statuses.

use super::tool;
use std::path::Path;
use std::process::Output;
use tempfile::TempDir;

const RULES: &str = "\
groups:
- name: g
  rules:
  - {record: twice, expr: x * 2}
  - {alert: High, expr: x > 1, annotations: {summary: 'it is {{ $value }}'}}
";

const TESTS: &str = "\
rule_files: [rules.yml]
tests:
- name: good
  input_series: [{series: x, values: 1 2 3}]
  alert_rule_test:
  - eval_time: 2m
    alertname: High
    exp_alerts: [{exp_annotations: {summary: it is 3}}]
  promql_expr_test:
  - {expr: twice, eval_time: 1m, exp_samples: [{labels: twice, value: 4}]}
- name: bad
  promql_expr_test:
  - {expr: '1', eval_time: 0, exp_samples: [{value: 2}]}
";

fn write(folder: &TempDir, name: &str, text: &str) -> String {
    let path = folder.path().join(name);
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

fn texts(output: Output) -> (Option<i32>, String, String) {
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (
        output.status.code(),
        text(output.stdout),
        text(output.stderr),
    )
}

#[test]
fn rule_files_are_checked() {
    let folder = tempfile::tempdir().unwrap();
    let good = write(&folder, "good.yml", RULES);
    let (status, out, err) = texts(tool(&["check", "rules", &good]));
    let expected = format!("Checking {good}\n  SUCCESS: 2 rules found\n\n");
    assert_eq!((status, out, err), (Some(0), expected, String::new()));

    let bad = write(&folder, "bad.yml", &RULES.replace("x * 2", "sum("));
    let (status, out, err) = texts(tool(&["check", "rules", &good, &bad]));
    assert_eq!(status, Some(1));
    assert!(out.contains("2 rules found"), "{out}");
    let place = format!(
        "  FAILED:\n{bad}: 4:27: group \"g\", rule 1, \"twice\": could not parse expression: 1:5: \
         parse error: unclosed left parenthesis\n"
    );
    assert_eq!(err, place);

    let missing = folder.path().join("none.yml").display().to_string();
    let (status, _, err) = texts(tool(&["check", "rules", &missing]));
    assert!(status == Some(1) && err.contains("No such file"), "{err}");
}

#[test]
fn rules_that_are_there_twice_are_bad_style() {
    let folder = tempfile::tempdir().unwrap();
    let twice = format!("{RULES}  - {{record: twice, expr: x + x}}\n");
    let twice = write(&folder, "twice.yml", &twice);
    for (words, expected) in [
        (&["check", "rules", &twice][..], 0),
        (&["check", "rules", "--lint-fatal", &twice], 3),
        (
            &["check", "rules", "--lint-fatal", "--lint", "all", &twice],
            3,
        ),
        (
            &["check", "rules", "--lint-fatal", "--lint=none", &twice],
            0,
        ),
    ] {
        let (status, out, err) = texts(tool(words));
        assert_eq!(status, Some(expected), "{words:?}");
        if words.contains(&"--lint=none") {
            assert!(out.contains("SUCCESS: 3 rules found"), "{out}");
        } else {
            let told = "lint error 1 duplicate rule(s) found.\nMetric: twice\nLabel(s):\nMight";
            assert!(err.contains(told), "{err}");
        }
    }
}

#[test]
fn unit_tests_are_run_and_reported() {
    let folder = tempfile::tempdir().unwrap();
    write(&folder, "rules.yml", RULES);
    let tests = write(&folder, "tests.yml", TESTS);
    let (status, out, err) = texts(tool(&["test", "rules", "--run", "^good$", &tests]));
    let expected = format!("Processing test file: {tests}\n  SUCCESS\n\n");
    assert_eq!((status, out, err), (Some(0), expected, String::new()));

    let junit = folder.path().join("junit.xml").display().to_string();
    let (status, _, err) = texts(tool(&["test", "rules", "--junit", &junit, &tests]));
    assert_eq!(status, Some(1));
    let told = "    expr: \"1\", time: 0s,\n        exp: {} 2E+00\n        got: {} 1E+00\n";
    assert_eq!(err, format!("  FAILED:\n{told}"));
    let xml = std::fs::read_to_string(Path::new(&junit)).unwrap();
    assert!(
        xml.contains("tests=\"2\" failures=\"1\" errors=\"0\""),
        "{xml}"
    );

    let (status, _, err) = texts(tool(&["test", "rules", "--run", "(", &tests]));
    assert!(status == Some(2) && err.contains("--run"), "{err}");
}

/// A directory may still be checked, even one that is called rules.
#[test]
fn a_directory_is_no_rule_file() {
    let (status, _, err) = texts(tool(&["check"]));
    assert!(status == Some(2) && err.contains("DIR"), "{err}");
    let (status, _, err) = texts(tool(&["check", "./rules"]));
    assert!(status == Some(2) && err.contains("./rules"), "{err}");
}
