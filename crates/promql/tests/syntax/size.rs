//! The memory of trees: a known multiple of the text.

use crate::syntax::limits::nested;
use latewood_promql::source::Matcher;
use latewood_promql::tree::{Binary, Expr, Selector};
use latewood_promql::{QUERY_BYTES_MAX, parse};
use latewood_wire::selector::Test;

/// Bytes of a tree for each byte of its text.
const BYTES_PER_BYTE: usize = 256;

/// Bytes of an allocation, with what an allocator adds.
fn heap(bytes: usize) -> usize {
    bytes.next_multiple_of(16) + 16
}

fn selector_bytes(selector: &Selector) -> usize {
    let values = selector.matchers.iter().map(|matcher| {
        let Test::Equal(value) = &matcher.test else {
            panic!("only equality is measured");
        };
        heap(matcher.name.len()) + heap(value.len())
    });
    let matchers = heap(selector.matchers.capacity() * size_of::<Matcher>());
    heap(size_of::<Selector>()) + heap(selector.name.capacity()) + matchers + values.sum::<usize>()
}

fn names_bytes(names: &Vec<String>) -> usize {
    let each = names.iter().map(|name| heap(name.capacity()));
    heap(names.capacity() * size_of::<String>()) + each.sum::<usize>()
}

/// Bytes of a tree beside its own place.
fn tree_bytes(expr: &Expr) -> usize {
    match expr {
        Expr::Number(_) => 0,
        Expr::Text(text) => heap(text.value.capacity()),
        Expr::Paren(inner, _) => heap(size_of::<Expr>()) + tree_bytes(inner),
        Expr::Unary(unary) => heap(size_of_val(&**unary)) + tree_bytes(&unary.expr),
        Expr::Binary(binary) => {
            let labels = binary.matching.as_ref();
            let labels = labels.map_or(0, |matching| names_bytes(&matching.labels));
            let sides = tree_bytes(&binary.left) + tree_bytes(&binary.right);
            heap(size_of::<Binary>()) + labels + sides
        }
        Expr::Aggregate(aggregate) => {
            let names = names_bytes(&aggregate.grouping);
            heap(size_of_val(&**aggregate)) + names + tree_bytes(&aggregate.expr)
        }
        Expr::Call(call) => {
            let args = heap(call.args.capacity() * size_of::<Expr>());
            heap(size_of_val(&**call)) + args + call.args.iter().map(tree_bytes).sum::<usize>()
        }
        Expr::Selector(selector) => selector_bytes(selector),
        Expr::Subquery(subquery) => heap(size_of_val(&**subquery)) + tree_bytes(&subquery.expr),
        other => panic!("{other:?} is not measured"),
    }
}

#[test]
fn trees_take_a_known_multiple_of_their_text() {
    let fill = |part: &str| part.repeat((QUERY_BYTES_MAX - 32) / part.len());
    // A tree of two sides each, in parentheses.
    let mut pairs = "a".to_owned();
    while pairs.len() * 4 < QUERY_BYTES_MAX {
        pairs = format!("({pairs}+{pairs})");
    }
    let texts = [
        pairs.replace('+', " or "),
        pairs.replace("a+a", "1+a"),
        pairs.replace("a+a", "-a+-a"),
        pairs,
        format!("label_join(a,\"b\",\"\"{})", fill(",\"a\"")),
        format!("sum by({})(a)", fill("a,")),
        format!("a*on({})a", fill("a,")),
        format!("{{a=\"b\",{}}}", fill("a=\"\",")),
        nested("max_over_time(", "a", "[1:])", 90),
        nested("abs(", "a", ")", 190),
    ];
    for text in texts {
        let expr = parse(&text).unwrap_or_else(|error| panic!("{}: {error}", &text[..40]));
        let bytes = tree_bytes(&expr);
        let most = text.len() * BYTES_PER_BYTE;
        assert!(
            bytes <= most,
            "{}: {bytes} of {}",
            &text[..40.min(text.len())],
            text.len()
        );
    }
    // An argument that only the checks refuse, in a vector that doubles.
    let argument = tree_bytes(&parse("a").unwrap()) + 2 * size_of::<Expr>();
    assert!(argument <= "a,".len() * BYTES_PER_BYTE, "{argument}");
}
