//! The year of all devices in PromQL: the mean temperature at each station, and its address in
//! the console. Tested below, and by each demo.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Datelike};
use serde::Deserialize;

use crate::base::address::Address;
use crate::base::error::{Doing, Error, Result};
use crate::base::http::Http;

const QUERY: &str = "avg by (station) (avg_over_time({measure=\"temp\"}[1d]))";
/// The year 2013 in New York, and 30 days.
pub(super) const START_S: i64 = 1_357_016_400;
pub(super) const END_S: i64 = 1_388_552_400;
const STEP_S: i64 = 2_592_000;

/// A station and its means by time in seconds, as the API writes them.
#[derive(Deserialize)]
struct Station {
    metric: BTreeMap<String, String>,
    values: Vec<(i64, String)>,
}

/// Prints the means of 30 days of each station.
///
/// # Errors
/// Where the server does not answer with one series for each of `stations` stations.
pub(super) fn show(http: &Address, stations: usize) -> Result<()> {
    let [start, end, step] = [START_S, END_S, STEP_S].map(|number| number.to_string());
    let parameters = [
        ("query", QUERY),
        ("start", &start),
        ("end", &end),
        ("step", &step),
    ];
    let answer = Http::new(http).get_json("/api/v1/query_range", &parameters)?;
    let series: Vec<Station> =
        serde_json::from_value(answer["data"]["result"].clone()).doing(QUERY)?;
    if series.len() != stations {
        return Err(Error::new(format!("{QUERY} gave {answer}")));
    }
    println!("\n6. The year of all devices, {QUERY}:");
    // The first window ends where the year begins: it is empty at some stations.
    let times = series.iter().flat_map(|one| &one.values);
    let times: BTreeSet<i64> = times.map(|value| value.0).collect();
    let dates = times.iter().map(|at| format!("{:>6}", date(*at)));
    println!("   day until{}", dates.collect::<String>());
    for Station { metric, values } in series {
        let means: BTreeMap<i64, String> = values.into_iter().collect();
        let mean = |at| {
            let mean = means.get(at).and_then(|mean| mean.parse::<f64>().ok());
            mean.map_or(" ".repeat(6), |mean| format!("{mean:>6.1}"))
        };
        let means: String = times.iter().map(mean).collect();
        let station = metric.get("station").map_or("", String::as_str);
        println!("   {station:<9}{means}");
    }
    Ok(())
}

/// The month and day of a time, as 03-02.
fn date(seconds: i64) -> String {
    let day = DateTime::from_timestamp(seconds, 0).unwrap_or_default();
    format!("{:02}-{:02}", day.month(), day.day())
}

/// The same in the console of the server at `http`.
pub(super) fn address(http: &Address) -> String {
    let encoded = |byte: u8| match byte {
        b'a'..=b'z' | b'_' | b'0'..=b'9' => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    };
    let query: String = QUERY.bytes().map(encoded).collect();
    format!("http://{http}/#/query?q={query}&from={START_S}000&to={END_S}000&step=1d")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_of_the_year_are_named() {
        let dates = [0, 30, 58, 59, 364].map(|day| date(START_S + day * 86_400));
        assert_eq!(dates, ["01-01", "01-31", "02-28", "03-01", "12-31"]);
    }

    #[test]
    fn the_address_has_nothing_that_ends_a_link() {
        let address = address(&Address::loopback(8086));
        assert_eq!(
            address,
            "http://127.0.0.1:8086/#/query?q=avg%20by%20%28station%29%20%28avg_over_time%28\
             %7Bmeasure%3D%22temp%22%7D%5B1d%5D%29%29&from=1357016400000&to=1388552400000&step=1d"
        );
    }
}
