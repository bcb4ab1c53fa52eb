//! What is wrong with rule files and their settings, in words.

use super::*;

#[test]
fn what_is_wrong_with_files_and_labels_is_said() {
    let shared = shared();
    type Change = fn(&mut Settings);
    let wrong: [(Change, &str); 5] = [
        (
            |of| of.files = vec!["/none.yml".into()],
            "/none.yml: there is no such file",
        ),
        (|of| of.files = vec!["/none/*.yml".into()], ""),
        (
            |of| of.external_labels = vec!["a".into()],
            "external-labels: \"a\" is not NAME=VALUE",
        ),
        (
            |of| of.alertmanagers = vec!["am:9093".into()],
            "alertmanager: a URL is wrong: expected http://HOST:PORT or https://HOST:PORT",
        ),
        (
            |of| of.external_url = "here".into(),
            "external-url: \"here\" is no URL",
        ),
    ];
    for (change, why) in wrong {
        let mut settings = shared.settings.rules.clone();
        change(&mut settings);
        let made = Manager::new(&settings, &shared.settings.promql);
        assert_eq!(made.err().unwrap_or_default(), why);
    }
}

#[test]
fn a_link_to_nothing_and_a_file_that_is_no_text_are_told_apart() {
    let shared = shared();
    let directory = tempfile::tempdir().unwrap();
    let (link, binary) = ("link.yml", "binary.yml");
    std::os::unix::fs::symlink("nowhere", directory.path().join(link)).unwrap();
    std::fs::write(directory.path().join(binary), b"groups: \xff\n").unwrap();
    for (file, why) in [
        (link, "it is a link to a file that is not there"),
        (binary, "it is no text in UTF-8, as a rule file has to be"),
    ] {
        let path = directory.path().join(file).display().to_string();
        let mut settings = shared.settings.rules.clone();
        settings.files = vec![path.clone()];
        let made = Manager::new(&settings, &shared.settings.promql);
        assert_eq!(made.err().unwrap_or_default(), format!("{path}: {why}"));
    }
}
