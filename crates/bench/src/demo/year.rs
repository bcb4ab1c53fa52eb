//! The year of all devices in PromQL: the mean temperature at each station, and its address in
//! the console. Tested below, and by each demo.

use crate::base::address::Address;
use crate::base::error::{Error, Result};
use crate::base::http::Http;

const QUERY: &str = "avg by (station) (avg_over_time({measure=\"temp\"}[1d]))";
/// The year 2013 in New York, and 30 days.
const START_S: i64 = 1_357_016_400;
const END_S: i64 = 1_388_552_400;
const STEP_S: i64 = 2_592_000;

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
    let series = answer["data"]["result"]
        .as_array()
        .map_or(&[][..], Vec::as_slice);
    if series.len() != stations {
        return Err(Error::new(format!("{QUERY} gave {answer}")));
    }
    println!("\n6. The year of all devices, {QUERY}:");
    for one in series {
        let values = one["values"].as_array().into_iter().flatten();
        let means = values.filter_map(|value| value[1].as_str()?.parse().ok());
        let means: Vec<String> = means.map(|mean: f64| format!("{mean:.1}")).collect();
        let station = one["metric"]["station"].as_str().unwrap_or_default();
        println!("   {station}: {}", means.join("  "));
    }
    Ok(())
}

/// The same in the console of the server at `http`.
pub(super) fn address(http: &Address) -> String {
    let encoded = |byte: u8| match byte {
        b'a'..=b'z' | b'_' | b'0'..=b'9' => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    };
    let query: String = QUERY.bytes().map(encoded).collect();
    format!("http://{http}/#/query?q={query}&from={START_S}000&to={END_S}000")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_has_nothing_that_ends_a_link() {
        let address = address(&Address::loopback(8086));
        assert_eq!(
            address,
            "http://127.0.0.1:8086/#/query?q=avg%20by%20%28station%29%20%28avg_over_time%28\
             %7Bmeasure%3D%22temp%22%7D%5B1d%5D%29%29&from=1357016400000&to=1388552400000"
        );
    }
}
