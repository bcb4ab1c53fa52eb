//! Keys and labels as the Time Series Benchmark Suite has them: a host, and 2 to 1,000 values.

/// The most labels a series gets.
pub(crate) const LABELS_MAX: usize = 10;

/// The key of series `number`.
pub(crate) fn key(number: u64) -> String {
    format!("cpu:usage_user:{number:07}")
}

/// The first `count` labels of series `number`.
pub(crate) fn labels(number: u64, count: usize) -> Vec<(&'static str, String)> {
    // Scattered, as hosts are over racks.
    let mixed = (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33) as usize;
    let regions = ["eu-west-1", "us-east-1", "ap-south-1"];
    let systems = ["Ubuntu16.10", "Ubuntu16.04LTS", "Ubuntu15.10"];
    let environments = ["production", "staging", "test"];
    let all: [(&str, &dyn Fn() -> String); LABELS_MAX] = [
        ("hostname", &|| format!("host_{number}")),
        ("region", &|| regions[mixed % 3].to_owned()),
        ("datacenter", &|| format!("dc-{}", mixed / 3 % 27)),
        ("rack", &|| format!("{}", mixed / 81 % 1_000)),
        ("os", &|| systems[mixed / 7 % 3].to_owned()),
        ("team", &|| format!("team-{}", mixed / 11 % 50)),
        ("arch", &|| ["x64", "x86"][mixed / 13 % 2].to_owned()),
        ("service", &|| format!("{}", mixed / 17 % 20)),
        ("service_version", &|| format!("{}", mixed / 19 % 2)),
        ("service_environment", &|| {
            environments[mixed / 23 % 3].to_owned()
        }),
    ];
    let some = all.iter().take(count);
    some.map(|(name, value)| (*name, value())).collect()
}
