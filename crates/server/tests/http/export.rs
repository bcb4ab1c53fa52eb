//! Samples as JSON lines, CSV, Arrow and Parquet.

use crate::harness::{Server, eventually};
use crate::http::client::Http;
use crate::http::server;
use arrow_array::RecordBatch;
use axum::body::Bytes;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::file::statistics::Statistics;
use serde_json::{Value, json};
use std::collections::BTreeMap;

const ALL: &str = "match[]={__name__!=%22%22}";

fn text(http: &mut Http, parameters: &str) -> String {
    let answer = http.get(&format!("/api/v1/export?{parameters}"));
    assert_eq!(answer.status, 200, "{parameters}: {}", answer.text());
    answer.text()
}

fn lines(http: &mut Http, parameters: &str) -> Vec<Value> {
    let text = text(http, parameters);
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn small() -> Server {
    let server = server(&[]);
    let text = "b{host=\"a,\\\"b\\\"\",az=\"x\"} 1.5 1000\n\
        b{host=\"a,\\\"b\\\"\",az=\"x\"} NaN 3000\n\
        b{host=\"a,\\\"b\\\"\",az=\"x\"} -0.0 2000\n\
        a{host=\"c\"} 1e300 1000\n\
        a{host=\"c\"} +Inf 2000\n\
        a{host=\"c\"} -Inf 3000\n";
    let written = Http::to(server.http()).post("/api/v1/import/prometheus", text.as_bytes());
    assert_eq!(written.status, 204, "{}", written.text());
    server.client().ask("TS.CREATE empty");
    server
}

#[test]
fn json_lines_have_the_shape_of_victoriametrics() {
    let server = small();
    let mut http = Http::to(server.http());
    assert_eq!(
        text(&mut http, ALL),
        "{\"metric\":{\"__name__\":\"a\",\"host\":\"c\"},\"values\":[1e+300,\"Infinity\",\
         \"-Infinity\"],\"timestamps\":[1000,2000,3000]}\n\
         {\"metric\":{\"__name__\":\"b\",\"az\":\"x\",\"host\":\"a,\\\"b\\\"\"},\"values\":[1.5,\
         -0.0,null],\"timestamps\":[1000,2000,3000]}\n"
    );
    let span = lines(&mut http, "match[]=b&start=2&end=2.999");
    assert_eq!(span[0]["timestamps"], json!([2000]));
    assert!(lines(&mut http, "match[]=b&start=4").is_empty());
    assert_eq!(
        lines(&mut http, &format!("{ALL}&max_rows_per_line=2")).len(),
        4
    );
}

#[test]
fn csv_has_a_column_for_each_label() {
    let server = small();
    let mut http = Http::to(server.http());
    assert_eq!(
        text(&mut http, &format!("{ALL}&format=csv")),
        "__name__,az,host,__timestamp__,__value__\r\n\
         a,,c,1000,1e+300\r\na,,c,2000,+Inf\r\na,,c,3000,-Inf\r\n\
         b,x,\"a,\"\"b\"\"\",1000,1.5\r\nb,x,\"a,\"\"b\"\"\",2000,-0.0\r\n\
         b,x,\"a,\"\"b\"\"\",3000,NaN\r\n"
    );
    let nothing = text(&mut http, "match[]=nothing&format=csv");
    assert_eq!(nothing, "__timestamp__,__value__\r\n");
}

/// `(labels, time, value's bits)` of an Arrow stream, row by row.
type Row = (BTreeMap<String, String>, i64, u64);

fn arrow_rows(bytes: &[u8]) -> Vec<Row> {
    rows_of_batches(arrow_ipc::reader::StreamReader::try_new(bytes, None).unwrap())
}

fn parquet_file(http: &mut Http, parameters: &str) -> ParquetRecordBatchReaderBuilder<Bytes> {
    let answer = http.get(&format!("/api/v1/export?{parameters}&format=parquet"));
    assert_eq!(answer.status, 200, "{}", answer.text());
    let kind = answer.field("content-type");
    assert_eq!(kind, Some("application/vnd.apache.parquet"));
    ParquetRecordBatchReaderBuilder::try_new(Bytes::from(answer.body)).unwrap()
}

fn rows_of_batches(
    batches: impl Iterator<Item = Result<RecordBatch, arrow_schema::ArrowError>>,
) -> Vec<Row> {
    use arrow_array::cast::AsArray;
    use arrow_array::types::{Float64Type, Int32Type, TimestampMillisecondType};
    let mut rows = Vec::new();
    for batch in batches {
        let batch = batch.unwrap();
        let schema = batch.schema();
        let labels = batch.num_columns() - 2;
        let times = batch
            .column(labels)
            .as_primitive::<TimestampMillisecondType>();
        let values = batch.column(labels + 1).as_primitive::<Float64Type>();
        for row in 0..batch.num_rows() {
            let label = |at: usize| {
                let column = batch.column(at).as_dictionary::<Int32Type>();
                let key = column.key(row)?;
                let value = column.values().as_string::<i32>().value(key);
                Some((schema.field(at).name().clone(), value.to_owned()))
            };
            let labels = (0..labels).filter_map(label).collect();
            rows.push((labels, times.value(row), values.value(row).to_bits()));
        }
    }
    rows
}

fn json_rows(lines: &[Value]) -> Vec<Row> {
    let mut rows = Vec::new();
    for line in lines {
        let metric = line["metric"].as_object().unwrap().iter();
        let labels: BTreeMap<_, _> = metric
            .map(|(name, value)| (name.clone(), value.as_str().unwrap().to_owned()))
            .collect();
        let values = line["values"].as_array().unwrap().iter();
        for (time, value) in line["timestamps"].as_array().unwrap().iter().zip(values) {
            let value = match value {
                Value::Null => f64::NAN,
                Value::String(text) => text.parse().unwrap(),
                value => value.as_f64().unwrap(),
            };
            rows.push((labels.clone(), time.as_i64().unwrap(), value.to_bits()));
        }
    }
    rows
}

/// One long series among many short ones.
fn many() -> Server {
    let server = server(&[]);
    let mut http = Http::to(server.http());
    let mut body = String::new();
    for at in 0..132_000 {
        body.push_str(&format!("long v={}.25 {at}000\n", at * 7 % 1000));
    }
    for series in 0..3_000 {
        body.push_str(&format!("short,host=h{series} v={series} 5\n"));
        body.push_str(&format!(
            "short,host=h{series},az=z{} v={series} 6\n",
            series % 3
        ));
    }
    assert_eq!(
        http.post("/write?precision=ms", body.as_bytes()).status,
        204
    );
    server
}

#[test]
fn arrow_and_json_hold_the_same_rows_of_many_series() {
    let server = many();
    let mut http = Http::to(server.http());
    let answer = http.get(&format!("/api/v1/export?{ALL}&format=arrow"));
    assert_eq!(
        answer.field("content-type"),
        Some("application/vnd.apache.arrow.stream")
    );
    let rows = arrow_rows(&answer.body);
    assert_eq!(rows.len(), 138_000);
    let lines = lines(&mut http, ALL);
    assert!(
        lines
            .iter()
            .all(|line| line["values"].as_array().unwrap().len() <= 10_000)
    );
    assert!(rows == json_rows(&lines), "Arrow and JSON differ");
    let csv = text(&mut http, &format!("{ALL}&format=csv"));
    assert_eq!(csv.lines().count(), 138_001);
    let nothing = http.get("/api/v1/export?match[]=nothing&format=arrow");
    assert!(arrow_rows(&nothing.body).is_empty());
}

#[test]
fn parquet_holds_the_same_rows_in_groups_that_end_with_series() {
    let server = many();
    let mut http = Http::to(server.http());
    let file = parquet_file(&mut http, ALL);
    let groups = file.metadata().row_groups();
    // The first has the long series, and no row of those behind it.
    let group_rows: Vec<_> = groups.iter().map(|group| group.num_rows()).collect();
    assert_eq!(group_rows, [132_000, 6_000]);
    let rows = rows_of_batches(file.build().unwrap());
    let lines = lines(&mut http, ALL);
    assert!(rows == json_rows(&lines), "Parquet and JSON differ");
    let nothing = parquet_file(&mut http, "match[]=nothing");
    assert!(rows_of_batches(nothing.build().unwrap()).is_empty());
}

#[test]
fn long_labels_are_in_a_parquet_file_once_a_group() {
    let server = server(&[]);
    let (mut http, mut redis) = (Http::to(server.http()), server.client());
    // More than the pages of a dictionary hold in other writers; then one that has many rows.
    for series in 0..9 {
        let padding = format!("{series}").repeat(120 << 10);
        redis.ask(&format!("TS.ADD a{series} 1 1 LABELS pad {padding} all x"));
    }
    let padding = "y".repeat(100 << 10);
    redis.ask(&format!("TS.CREATE z LABELS pad {padding} all x"));
    for from in (0..40_000).step_by(10_000) {
        let samples = (from..from + 10_000).map(|at| format!(" z {at} {}", at % 100));
        let command = format!("TS.MADD{}", samples.collect::<String>());
        assert!(redis.ask(&command).starts_with("*10000\r\n"));
    }
    let answer = http.get("/api/v1/export?match[]={all=%22x%22}&format=parquet");
    assert!(answer.body.len() < 1 << 20, "{} bytes", answer.body.len());
    let file = ParquetRecordBatchReaderBuilder::try_new(Bytes::from(answer.body)).unwrap();
    let rows = rows_of_batches(file.build().unwrap());
    assert_eq!(rows.len(), 40_009);
    assert_eq!(rows[8].0["pad"], "8".repeat(120 << 10));
    assert!(rows[9..].iter().all(|row| row.0["pad"] == padding));
}

#[test]
fn statistics_of_parquet_are_those_of_its_rows() {
    let server = small();
    let mut http = Http::to(server.http());
    let file = parquet_file(&mut http, ALL);
    let group = file.metadata().row_group(0);
    let of = |name: &str| {
        let column = group.columns().iter();
        let mut column = column.filter(|column| column.column_path().string() == name);
        column.next().unwrap().statistics().cloned()
    };
    // Among the values is one that is no number.
    assert_eq!(of("__value__"), None);
    let Some(Statistics::Int64(times)) = of("__timestamp__") else {
        panic!("times are no integers");
    };
    assert_eq!(
        (times.min_opt(), times.max_opt()),
        (Some(&1000), Some(&3000))
    );
    let hosts = of("host").unwrap();
    assert_eq!(hosts.min_bytes_opt(), Some(&b"a,\"b\""[..]));
    assert_eq!(hosts.max_bytes_opt(), Some(&b"c"[..]));
    assert_eq!(of("az").unwrap().null_count_opt(), Some(3));
}

#[test]
fn buckets_in_parts_are_those_of_one_query() {
    let server = server(&[]);
    let (mut http, mut redis) = (Http::to(server.http()), server.client());
    let mut body = String::new();
    for at in 0..5_000i64 {
        // Gaps, so that some buckets are missing.
        let time = 1_000_000 + at * 250 + at / 100 * 7_000;
        body.push_str(&format!("m v={} {time}\n", at * 37 % 101));
    }
    assert_eq!(
        http.post("/write?precision=ms", body.as_bytes()).status,
        204
    );
    for name in [
        "avg", "sum", "min", "max", "range", "count", "first", "last", "std.p", "std.s", "var.p",
        "var.s", "twa", "countall",
    ] {
        let span = "match[]=m_v&start=1003.3&end=1800";
        let buckets = format!("{span}&aggregation={name}&step=1500ms");
        let parts = lines(&mut http, &format!("{buckets}&max_rows_per_line=7"));
        let whole = lines(&mut http, &buckets);
        assert_eq!(whole.len(), 1);
        assert!(parts.len() > 20, "{name}: {}", parts.len());
        assert!(
            json_rows(&parts) == json_rows(&whole),
            "{name}: {parts:?} {whole:?}"
        );
        let range = format!("TS.RANGE m_v 1003300 1800000 AGGREGATION {name} 1500");
        let rows = redis.ask(&range);
        let count = whole[0]["values"].as_array().unwrap().len();
        assert!(rows.starts_with(&format!("*{count}\r\n")), "{name}: {rows}");
        let last = whole[0]["timestamps"].as_array().unwrap().last().unwrap();
        assert!(rows.contains(&format!(":{last}\r\n")), "{name}: {rows}");
    }
    let upper = lines(&mut http, "match[]=m_v&aggregation=MAX&step=1h");
    assert_eq!(upper[0]["values"], json!([100]));
    assert_eq!(upper[0]["timestamps"], json!([0]));
}

#[test]
fn lines_are_as_long_as_asked_however_much_is_read_at_a_time() {
    let server = server(&[]);
    let mut http = Http::to(server.http());
    // Of long labels less is read at a time.
    let padding = "x".repeat(3_000);
    let body: String = (0..2_000)
        .map(|at| format!("m,pad={padding} v={at} {at}\n"))
        .collect();
    let written = http.post("/write?precision=ms", body.as_bytes());
    assert_eq!(written.status, 204);
    let whole = lines(&mut http, "match[]=m_v");
    assert_eq!(whole.len(), 1);
    for rows in [1, 7, 1_999, 2_000] {
        let parts = lines(&mut http, &format!("match[]=m_v&max_rows_per_line={rows}"));
        let lengths = parts
            .iter()
            .map(|line| line["values"].as_array().unwrap().len());
        let (last, full) = lengths
            .collect::<Vec<_>>()
            .split_last()
            .map(|(a, b)| (*a, b.to_vec()))
            .unwrap();
        assert!(
            full.iter().all(|length| *length == rows),
            "{rows}: {full:?}"
        );
        assert_eq!(full.len() * rows + last, 2_000);
        let joined = |name: &str| -> Vec<Value> {
            let all = parts
                .iter()
                .flat_map(|line| line[name].as_array().unwrap().clone());
            all.collect()
        };
        for name in ["values", "timestamps"] {
            assert!(
                Value::from(joined(name)) == whole[0][name],
                "{rows}: {name}"
            );
        }
    }
}

/// `time value` of each row of a reply to TS.RANGE, and of a CSV.
fn rows_of_range(reply: &str) -> Vec<String> {
    let words: Vec<_> = reply
        .lines()
        .filter(|line| !line.starts_with('*'))
        .collect();
    let row = |row: &[&str]| format!("{} {:?}", &row[0][1..], row[1][1..].parse::<f64>().unwrap());
    words.chunks(2).map(row).collect()
}

fn rows_of_csv(text: &str) -> Vec<String> {
    let row = |line: &str| {
        let mut cells = line.rsplit(',');
        let value: f64 = cells.next().unwrap().parse().unwrap();
        format!("{} {value:?}", cells.next().unwrap())
    };
    text.lines().skip(1).map(row).collect()
}

#[test]
fn buckets_over_nan_are_those_of_one_query_wherever_a_part_ends() {
    let server = server(&[]);
    let (mut http, mut redis) = (Http::to(server.http()), server.client());
    // Of long labels less is read at a time: some 50 rows, some 100.
    for (key, bytes) in [("a", 20_000), ("b", 9_000)] {
        redis.ask(&format!("TS.CREATE {key} LABELS pad {}", "x".repeat(bytes)));
        let (mut random, mut stretch, mut is_silent) = (7u64, 0, false);
        let mut command = "TS.MADD".to_owned();
        for at in 0..1_200u64 {
            random = random
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            // Stretches of up to 90 samples, of NaN or of numbers and some NaN.
            if stretch == 0 {
                (is_silent, stretch) = (!is_silent, 1 + (random >> 33) % 90);
            }
            stretch -= 1;
            let is_nan = is_silent || random >> 60 == 0;
            let value = if is_nan {
                "nan".to_owned()
            } else {
                (random >> 50).to_string()
            };
            command.push_str(&format!(" {key} {} {value}", at * 5 + (random >> 62)));
        }
        let added = redis.ask(&command);
        assert!(added.starts_with("*1200\r\n"), "{}", &added[..100]);
        for name in [
            "twa", "last", "first", "avg", "min", "std.p", "countnan", "countall",
        ] {
            let range = redis.ask(&format!("TS.RANGE {key} 13 5900 AGGREGATION {name} 15"));
            let range = rows_of_range(&range);
            assert!(range.len() > 150, "{}", range.len());
            let parts = format!("match[]={key}&start=0.013&end=5.9&aggregation={name}&step=15ms");
            let parts = rows_of_csv(&text(&mut http, &format!("{parts}&format=csv")));
            assert_eq!(parts, range, "{name} of {key}");
        }
    }
}

#[test]
fn what_an_export_cannot_do_is_told() {
    let server = small();
    server.client().ask("TS.CREATE bad LABELS __value__ x");
    let mut http = Http::to(server.http());
    for (parameters, wanted) in [
        ("", "no match[] parameter provided"),
        (
            "match[]=a&format=orc",
            "unknown format \"orc\"; expected json, csv, arrow or parquet",
        ),
        (
            "match[]=a&aggregation=avg",
            "aggregation and step must be given together",
        ),
        (
            "match[]=a&aggregation=median&step=1m",
            "unknown aggregation \"median\"; expected one of avg, sum",
        ),
        ("match[]=a&aggregation=avg&step=0", "step must be positive"),
        (
            "match[]=a&agregation=avg",
            "unknown parameter \"agregation\"; expected one of match[], start",
        ),
        (
            "match[]=bad&format=csv",
            "a label __value__, which is the name of a column",
        ),
        ("match[]=a&start=3&end=2", "end is before start"),
    ] {
        let answer = http.get(&format!("/api/v1/export?{parameters}"));
        assert_eq!(answer.status, 400, "{parameters}");
        let body: Value = serde_json::from_slice(&answer.body).unwrap();
        let error = body["error"].as_str().unwrap();
        assert!(error.contains(wanted), "{parameters}: {error}");
    }
}

#[test]
fn a_reader_who_leaves_ends_the_work_and_others_go_on() {
    let server = server(&[]);
    let mut http = Http::to(server.http());
    http.write_wide_rows(40_000);
    // More readers than there are threads: they take no more than the head,
    // which says that their answers are under way, and hold none.
    let mut many: Vec<Http> = (0..12)
        .map(|_| {
            let mut slow = Http::to(server.http());
            slow.send(b"GET /api/v1/export?match[]=m_v&format=csv HTTP/1.1\r\nHost: x\r\n\r\n");
            slow
        })
        .collect();
    assert_eq!(http.post("/write?precision=ms", b"n v=1 1\n").status, 204);
    assert_eq!(lines(&mut http, "match[]=n_v")[0]["values"], json!([1]));
    for slow in &mut many {
        assert_eq!(slow.head().field("transfer-encoding"), Some("chunked"));
    }
    drop(many);
    let mut redis = server.client();
    eventually("the end of answers that nobody reads", || {
        redis.info("read_export_cancelled") >= 12
    });
}

#[test]
fn exported_lines_are_imported_as_they_were() {
    let server = small();
    let exported = text(&mut Http::to(server.http()), ALL);
    let other = crate::http::server(&[]);
    let mut http = Http::to(other.http());
    let written = http.post("/api/v1/import", exported.as_bytes());
    assert_eq!(written.status, 204, "{}", written.text());
    assert_eq!(text(&mut http, ALL), exported);
    let wrong = exported.clone() + "{}\n" + &exported.replace("1e+300", "\"x\"");
    let refused = http.post("/api/v1/import", wrong.as_bytes());
    assert_eq!(refused.status, 400);
    let told = refused.text();
    for words in [
        "2 refused, 11 kept",
        "line 3: expected {",
        "line 4: value 1 is not a number",
    ] {
        assert!(told.contains(words), "{told}");
    }
}
