//! Redis: series are made with TS.CREATE and the first line of their host, labels and all, since
//! others make theirs then too. Samples come with TS.MADD.

use latewood_wire::resp::encode_command;

use super::common::Body;
use crate::workload::hosts::{Batch, CpuLoad, FIELDS, TAGS};

const LINES_PER_COMMAND: usize = 100;

pub(super) fn encode(load: &CpuLoad, batch: &Batch) -> Body {
    let mut body = Body::default();
    for &host in &batch.new_hosts {
        for field in FIELDS {
            body.add(&create(load, host, field));
        }
    }
    for lines in batch.lines.chunks(LINES_PER_COMMAND) {
        let mut words = vec!["TS.MADD".to_owned()];
        for &line in lines {
            let timestamp = load.timestamp_ms(line).to_string();
            for (field, value) in FIELDS.iter().zip(load.fields(line)) {
                words.push(key(load.host(line), field));
                words.push(timestamp.clone());
                words.push(value.to_string());
            }
        }
        body.add(&words);
    }
    body
}

impl Body {
    fn add(&mut self, words: &[String]) {
        let words: Vec<&[u8]> = words.iter().map(String::as_bytes).collect();
        encode_command(&mut self.bytes, &words);
        self.commands += 1;
    }
}

pub(super) fn key(host: u32, field: &str) -> String {
    format!("cpu:host_{host}:{field}")
}

fn create(load: &CpuLoad, host: u32, field: &str) -> Vec<String> {
    let key = key(host, field);
    let words = format!("TS.CREATE {key} LABELS measurement cpu fieldname {field}");
    let mut words: Vec<String> = words.split(' ').map(str::to_owned).collect();
    for (name, value) in TAGS.iter().zip(load.tags(host)) {
        words.extend([(*name).to_owned(), value.clone()]);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_makes_its_series_first() {
        let load = CpuLoad::new(2, 120, 1);
        let batches = load.batches(&load.order(0.0, 1), 1, 150).remove(0);
        let [first, second] = [0, 1].map(|at| encode(&load, &batches[at]));
        assert_eq!((first.commands, second.commands), (20 + 2, 1));
        assert!(first.bytes.starts_with(b"*27\r\n$9\r\nTS.CREATE\r\n"));
        // 90 lines of ten samples of three words, and the name of the command.
        assert!(second.bytes.starts_with(b"*2701\r\n$7\r\nTS.MADD\r\n"));
    }
}
