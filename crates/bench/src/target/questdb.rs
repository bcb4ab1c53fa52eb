//! QuestDB, which takes Influx line protocol over HTTP.

use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::store::{Sender, Store};
use super::{Process, peer};
use crate::address::Address;
use crate::error::{Error, Result};
use crate::http::Http;
use crate::lines::{CpuLoad, FIELDS};
use crate::protocol::Protocol;

/// The script, within the project.
const SCRIPT: &str = "bench/peers/questdb.sh";
/// Longest time its log may take to get into the table.
const APPLY_PATIENCE: Duration = Duration::from_secs(600);
/// How often to ask whether it has.
const ASK_AGAIN: Duration = Duration::from_millis(50);

/// A running one.
#[derive(Debug)]
pub(crate) struct QuestDb {
    address: Address,
    http: Http,
}

/// Starts it; returns its settings too.
///
/// # Errors
/// When it cannot be installed or does not come up.
pub(super) fn start() -> Result<(Process, String)> {
    let process = peer::start(SCRIPT, |http| QuestDb::ask(http, "select 1").is_ok())?;
    let settings = "as it comes: table with its log, partitions of a day; telemetry off";
    Ok((process, settings.to_owned()))
}

impl QuestDb {
    /// The one at `address`.
    pub(super) fn at(address: &Address) -> Self {
        QuestDb {
            address: address.clone(),
            http: Http::new(address),
        }
    }

    fn ask(http: &Http, question: &str) -> Result<Value> {
        let answer = http.get_json("/exec", &[("query", question)])?;
        Ok(answer["dataset"].clone())
    }

    /// Whether the table holds everything its log does.
    fn is_applied(&self) -> Result<bool> {
        let state = "select suspended, writerTxn, sequencerTxn, bufferedTxnSize from wal_tables() \
                     where name = 'cpu'";
        let rows = Self::ask(&self.http, state)?;
        let row = &rows[0];
        if row[0] == true {
            return Err(Error::new("QuestDB has suspended the table"));
        }
        Ok(row[1].is_number() && row[1] == row[2] && row[3] == 0)
    }
}

impl Store for QuestDb {
    fn version(&self) -> Result<String> {
        let rows = Self::ask(&self.http, "select build()")?;
        let build = rows[0][0].as_str().unwrap_or_default();
        let version = build.split(['"', ',', ':']).find(|word| {
            let word = word.trim();
            word.starts_with(|first: char| first.is_ascii_digit()) && word.contains('.')
        });
        Ok(format!("QuestDB {}", version.unwrap_or(build).trim()))
    }

    fn protocol(&self) -> Protocol {
        Protocol::Influx
    }

    fn sender(&self) -> Result<Box<dyn Sender>> {
        let http = Http::new(&self.address);
        Ok(Box::new(peer::Poster::new(http, "/write?precision=n", &[])))
    }

    fn drain(&self) -> Result<()> {
        let began = Instant::now();
        while !self.is_applied()? {
            if began.elapsed() > APPLY_PATIENCE {
                return Err(Error::new("QuestDB does not apply its log"));
            }
            thread::sleep(ASK_AGAIN);
        }
        Ok(())
    }

    fn values(&self, _: &CpuLoad) -> Result<u64> {
        let counts = FIELDS.map(|field| format!("count({field})"));
        let rows = Self::ask(&self.http, &format!("select {} from cpu", counts.join(",")))?;
        let counts = rows[0].as_array().into_iter().flatten();
        Ok(counts.filter_map(Value::as_u64).sum())
    }

    fn series(&self, _: &CpuLoad, host: u32, field: usize) -> Result<Vec<(i64, f64)>> {
        let name = FIELDS[field];
        let question = format!(
            "select cast(timestamp as long) / 1000, {name} from cpu \
             where hostname = 'host_{host}' order by timestamp"
        );
        let rows = Self::ask(&self.http, &question)?;
        peer::samples(&rows).ok_or_else(|| Error::new(format!("{question} has no rows")))
    }
}
