//! Latewood and RedisTimeSeries, which take samples with TS.MADD.

use latewood_wire::resp::{Value, encode_command};

use super::store::{Body, Sender, Store};
use crate::address::Address;
use crate::control::Control;
use crate::error::{Error, Result};
use crate::late;
use crate::lines::{Batch, CpuLoad, FIELDS, TAGS};
use crate::reply::ReplyExt;

/// Lines of one TS.MADD: ten samples each.
const LINES_PER_COMMAND: usize = 100;
/// Series whose TS.INFO is asked for at a time.
const KEYS_AT_ONCE: usize = 1_000;

/// A running one.
#[derive(Debug)]
pub(crate) struct Resp {
    address: Address,
}

/// A connection that sends commands.
struct Commander {
    control: Control,
}

impl Resp {
    /// The one at `address`.
    pub(super) fn at(address: &Address) -> Self {
        Resp {
            address: address.clone(),
        }
    }

    fn control(&self) -> Result<Control> {
        Control::connect(&self.address)
    }
}

impl Store for Resp {
    fn version(&self) -> Result<String> {
        late::version(&self.address)
    }

    /// Series are made with the first line of their host, labels and all: others do that with
    /// the first line too.
    fn encode(&self, load: &CpuLoad, batch: &Batch) -> Result<Body> {
        let mut body = Body {
            bytes: Vec::new(),
            commands: 0,
        };
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
        Ok(body)
    }

    fn sender(&self) -> Result<Box<dyn Sender>> {
        Ok(Box::new(Commander {
            control: self.control()?,
        }))
    }

    fn drain(&self) -> Result<()> {
        let mut control = self.control()?;
        if late::settle(&mut control)? {
            control.run(&[b"SAVE"])?;
        }
        Ok(())
    }

    fn values(&self, load: &CpuLoad) -> Result<u64> {
        let mut control = self.control()?;
        let all = (0..load.hosts()).flat_map(|host| FIELDS.map(|field| key(host, field)));
        let commands: Vec<_> = all
            .map(|key| vec![b"TS.INFO".to_vec(), key.into_bytes()])
            .collect();
        let mut held = 0;
        for some in commands.chunks(KEYS_AT_ONCE) {
            for info in control.run_all(some)? {
                let samples = info.field("totalSamples").and_then(|value| value.number());
                let samples = samples.and_then(|samples| u64::try_from(samples).ok());
                held += samples.ok_or_else(|| Error::new("TS.INFO has no totalSamples"))?;
            }
        }
        Ok(held)
    }

    fn series(&self, _: &CpuLoad, host: u32, field: usize) -> Result<Vec<(i64, f64)>> {
        let key = key(host, FIELDS[field]);
        let reply = self
            .control()?
            .run(&[b"TS.RANGE", key.as_bytes(), b"-", b"+"])?;
        late::rows(&reply)
    }
}

impl Sender for Commander {
    fn send(&mut self, body: &Body) -> Result<()> {
        self.control.exchange(&body.bytes, body.commands, |reply| {
            let refused = match &reply {
                Value::Array(items) => items.iter().find(|item| matches!(item, Value::Error(_))),
                Value::Error(_) => Some(&reply),
                _ => None,
            };
            match refused {
                Some(error) => Err(Error::new(format!("the server refused: {}", error.text()))),
                None => Ok(()),
            }
        })
    }
}

impl Body {
    fn add(&mut self, words: &[String]) {
        let words: Vec<&[u8]> = words.iter().map(String::as_bytes).collect();
        encode_command(&mut self.bytes, &words);
        self.commands += 1;
    }
}

fn key(host: u32, field: &str) -> String {
    format!("cpu:host_{host}:{field}")
}

fn create(load: &CpuLoad, host: u32, field: &str) -> Vec<String> {
    let mut words = vec!["TS.CREATE".to_owned(), key(host, field)];
    let labels = ["LABELS", "measurement", "cpu", "fieldname", field];
    words.extend(labels.map(str::to_owned));
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
        let there = Resp::at(&Address::loopback(1));
        let [first, second] = [0, 1].map(|at| there.encode(&load, &batches[at]).unwrap());
        assert_eq!((first.commands, second.commands), (20 + 2, 1));
        assert!(first.bytes.starts_with(b"*27\r\n$9\r\nTS.CREATE\r\n"));
        // 90 lines of ten samples of three words, and the name of the command.
        assert!(second.bytes.starts_with(b"*2701\r\n$7\r\nTS.MADD\r\n"));
    }
}
