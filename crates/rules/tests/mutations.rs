//! Rule files and templates that are damaged at random: they are read or refused, and nothing panics.
//! Seeds are fixed and printed.

use latewood_rules::RuleFile;
use latewood_rules::template::Template;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};

const SEEDS: u64 = 4;
const MUTATIONS: usize = 1_500;

const FILE: &str = "\
# A comment
groups:
- name: &n \"a\\u0041\"
  interval: 30s
  labels: {team: db, <<: {x: y}}
  rules:
  - record: job:up:sum
    expr: |
      sum by (job) (
        up)
  - &down
    alert: Down
    expr: >-
      up == 0
    for: 5m
    annotations: {summary: '{{ $labels.job }} {{ if gt $value 1.0 }}x{{ end }}', ? k : !!str v}
  - {<<: *down, alert: c}
...
---
- second
";

/// What is put in at random places.
const PIECES: [&str; 24] = [
    "*n",
    "&n ",
    "{",
    "}",
    "[",
    "]",
    ": ",
    "- ",
    "? ",
    "\n",
    "\t",
    "|",
    ">",
    "'",
    "\"",
    "#",
    "!!",
    "%YAML 1.2\n",
    "---\n",
    "<<: ",
    "\u{feff}",
    "\u{85}",
    "{{",
    "}}",
];

fn mutated(rng: &mut StdRng, text: &str) -> String {
    let mut letters: Vec<char> = text.chars().collect();
    for _ in 0..rng.random_range(1..5) {
        let at = rng.random_range(0..=letters.len());
        let end = (at + rng.random_range(0..8)).min(letters.len());
        let piece = match rng.random_range(0..3) {
            0 => "",
            _ => PIECES.choose(rng).expect("not empty"),
        };
        letters.splice(at..end, piece.chars());
    }
    letters.into_iter().collect()
}

#[test]
fn damaged_files_are_refused_or_read() {
    let (mut read, mut refused) = (0, 0);
    for seed in 1..=SEEDS {
        println!("seed {seed}");
        let mut rng = StdRng::seed_from_u64(seed);
        for _ in 0..MUTATIONS {
            let text = mutated(&mut rng, FILE);
            let held = text.clone();
            let parsed = std::panic::catch_unwind(|| RuleFile::parse(&held, false));
            match parsed.unwrap_or_else(|_| panic!("seed {seed} panics: {text:?}")) {
                Ok(_) => read += 1,
                Err(faults) => {
                    assert!(!faults.is_empty());
                    refused += 1;
                }
            }
        }
    }
    assert!(
        read > 100 && refused > 1_000,
        "{read} read, {refused} refused"
    );
}

#[test]
fn damaged_templates_are_refused_or_read() {
    let text = "{{ define \"x\" }}{{ .a }}{{ end }}{{ range $i, $v := query \"m\" }}{{ with $v.Labels }}\
                {{ .job | printf \"%-8.2v %[1]d %*d\" 3 }}{{ else }}{{ template \"x\" . }}{{ end }}{{ end }}";
    for seed in 1..=SEEDS {
        println!("seed {seed}");
        let mut rng = StdRng::seed_from_u64(seed);
        for _ in 0..MUTATIONS {
            let text = mutated(&mut rng, text);
            let parsed = std::panic::catch_unwind(|| Template::parse("T", &text));
            let parsed = parsed.unwrap_or_else(|_| panic!("seed {seed} panics: {text:?}"));
            let Ok(template) = parsed else {
                continue;
            };
            let labels = latewood_promql::labels::Labels::from_pairs([("job", "a")]);
            let data = latewood_rules::template::Data {
                labels: &labels,
                value: f64::NAN,
                external_labels: &labels,
                external_url: "",
                now_ms: 0,
            };
            let mut ask = |_: &str| Ok(vec![(labels.clone(), f64::INFINITY)]);
            // Whatever it makes.
            let _ = template.expand(&data, &mut ask);
        }
    }
}
