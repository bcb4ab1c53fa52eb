//! The topic of the log in `deploy/kubernetes/kafka.yaml` is the one that `cluster init` makes.

use latewood_cluster::topic::{Replication, new_topic};
use std::fmt::Write;

const FILE: &str = include_str!("../../../deploy/kubernetes/kafka.yaml");

#[test]
fn the_topic_for_kubernetes_is_as_it_is_made() {
    let made = new_topic("main", 1, Replication::Durable);
    let mut expected = format!(
        "spec:\n  partitions: {}\n  replicas: {}\n  config:\n",
        made.partitions, made.replicas
    );
    for (name, value) in &made.settings {
        writeln!(expected, "    {name}: {value}").unwrap();
    }
    let documents = FILE.split("---\n");
    let topics: Vec<_> = documents
        .filter(|document| document.contains("\nkind: KafkaTopic\n"))
        .collect();
    assert_eq!(topics.len(), 1);
    let (head, spec) = topics[0].split_once("spec:\n").unwrap();
    assert_eq!(format!("spec:\n{spec}"), expected);
    assert!(
        head.contains(&format!("\n  name: {}\n", made.name)),
        "{head}"
    );
}
