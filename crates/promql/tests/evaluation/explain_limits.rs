//! What bounds an explanation.

use crate::evaluation::MIN;
use crate::evaluation::explain::times;
use crate::evaluation::memory::Memory;
use latewood_promql::engine::{Query, Settings};

#[test]
fn the_deepest_and_longest_queries_are_explained() {
    let explain = || {
        let memory = Memory::load(MIN, "x 1");
        let sum = |levels: u32| (0..levels).fold("x".to_owned(), |sum, _| format!("({sum}+{sum})"));
        for text in [
            format!("{}x{}", "-(".repeat(99), ")".repeat(99)),
            format!("{}x{}", "sum(".repeat(199), ")".repeat(199)),
            format!("x{}", " or on(a) x".repeat(998)),
            format!("x{}", " + x".repeat(998)),
            // 4,096 selectors.
            sum(12),
            format!("label_join(x, \"a\"{})", ", \"b\"".repeat(50_000)),
            format!("{{__name__=\"x\",a!=\"{}\"}}", "\\n".repeat(120_000)),
        ] {
            let query = Query::new(&text).unwrap();
            let settings = Settings::default();
            let explanation = query.explain(&text, times(0, 0), false, &settings, &memory);
            let explanation = explanation.unwrap();
            let (nodes, omitted) = (&explanation.nodes, explanation.nodes_omitted);
            assert!(nodes.len() <= 2000);
            assert_eq!(omitted > 0, nodes.len() == 2000, "{omitted}");
            let missing: usize = nodes.iter().map(|node| node.children_omitted).sum();
            assert_eq!(missing > 0, omitted > 0);
            for (id, node) in nodes.iter().enumerate() {
                assert!(node.text.len() < 300 && node.name.len() < 300);
                assert!(
                    node.children
                        .iter()
                        .all(|child| nodes[*child].parent == Some(id))
                );
                assert!(node.to_json(id).to_string().len() < 16 << 10);
            }
        }
    };
    let thread = std::thread::Builder::new().stack_size(2 << 20);
    thread.spawn(explain).unwrap().join().unwrap();
}

#[test]
fn examples_are_few_and_short() {
    let long = "v".repeat(2000);
    let lines: String = (0..40)
        .map(|at| {
            format!(
                "x{{a=\"{at:02}\",l=\"{long}\"}} 1 \n y{{a=\"{:02}\"}} 1 \n",
                at + 20
            )
        })
        .collect();
    let memory = Memory::load(MIN, &lines);
    let text = vec!["(x * on(a) y)"; 90].join(" or ");
    let query = Query::new(&text).unwrap();
    let explanation = query.explain(&text, times(0, 0), false, &Settings::default(), &memory);
    let explanation = explanation.unwrap();
    let all = explanation
        .nodes
        .iter()
        .filter_map(|node| node.matching.as_ref());
    let joins: Vec<_> = all.filter(|matching| matching.by.is_on).collect();
    assert_eq!(joins.len(), 90);
    for matching in &joins {
        assert_eq!((matching.left.series, matching.left.matched), (40, 20));
        assert_eq!((matching.right.series, matching.pairs), (40, 20));
        let examples = &matching.examples;
        assert!(matching.is_cut || (examples.len(), matching.left.unmatched.len()) == (10, 10));
        let value = examples.first().map(|pair| pair.left.labels[2].1.len());
        assert!(value.is_none_or(|bytes| bytes == 256 + 3));
    }
    // There is room for some, not for all of them.
    assert!(!joins[0].is_cut || !joins[89].is_cut);
    let nodes = explanation.nodes.iter().enumerate();
    let bytes: usize = nodes
        .map(|(id, node)| node.to_json(id).to_string().len())
        .sum();
    assert!(bytes < 2 << 20, "{bytes}");
}
