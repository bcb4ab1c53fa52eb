//! Rule files: no input may panic, be slow or use much memory. Templates of a file that is read are
//! run, too.
#![cfg_attr(fuzzing, no_main)]

use latewood_promql::labels::Labels;
use latewood_rules::template::Data;
use latewood_rules::{Kind, RuleFile};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let file = match RuleFile::parse(text, false) {
        Ok(file) => file,
        Err(faults) => {
            assert!(!faults.is_empty());
            return;
        }
    };
    let labels = Labels::from_pairs([("job", "a")]);
    let data = Data {
        labels: &labels,
        value: 1.5,
        external_labels: &labels,
        external_url: "http://a/b",
        now_ms: 1_700_000_000_000,
    };
    for rule in file.groups.iter().flat_map(|group| &group.rules) {
        if let Kind::Alert(alerting) = &rule.kind {
            for template in alerting.annotations.values() {
                let _ = template.expand(&data, &mut |_| Ok(vec![(labels.clone(), 1.0)]));
            }
        }
    }
});
