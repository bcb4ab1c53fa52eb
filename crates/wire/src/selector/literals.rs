//! The literals that a regular expression matches, where they can be listed.
//!
//! `a|b\.c`, `(?:web|db)-[12]\.example`, `^a?$`: a value is looked up among their literals, without a
//! compiled program. `regex-syntax` parses; the tree that it returns is expanded here.
//!
//! An expression has an allowance proportional to its length. Each literal takes its bytes and one
//! more from it, those of groups within the expression too, so that neither memory nor time explodes:
//! `(a|b)(a|b)...` is not listed beyond it. An alternation of literals takes less than its length.
//!
//! Tested by `selector/tests/literals.rs`, beside compiled expressions.

use regex_syntax::ParserBuilder;
use regex_syntax::hir::{Class, Hir, HirKind, Look, Repetition};

/// The allowance of an expression is sixteen times its length, and in these bounds.
const ALLOWANCE_BYTES: (usize, usize) = (64 << 10, 4 << 20);
/// Bytes of a literal besides its own: where it is and how long, and what its allocation rounds up.
const LITERAL_BYTES: usize = 32;

/// All that an expression matches, in order, each once; with the bytes that this takes, those of
/// the work included.
pub(super) fn literals(expression: &str) -> Option<(Vec<Box<[u8]>>, usize)> {
    let mut parser = ParserBuilder::new()
        .utf8(false)
        .dot_matches_new_line(true)
        .build();
    let hir = parser.parse(expression).ok()?;
    let (least, most) = ALLOWANCE_BYTES;
    let allowance = (16 * expression.len()).clamp(least, most);
    let whole = Edges {
        start: true,
        end: true,
    };
    let mut expansion = Expansion { allowance };
    let listed = expansion.list(&hir, whole)?;
    let mut listed: Vec<Box<[u8]>> = listed.into_iter().map(Vec::into_boxed_slice).collect();
    listed.sort_unstable();
    listed.dedup();
    let bytes: usize = listed.iter().map(|one| one.len() + LITERAL_BYTES).sum();
    let worked = allowance - expansion.allowance;
    Some((listed, bytes + worked))
}

/// Which edges of the value a part of the expression is sure to touch.
#[derive(Clone, Copy, Default)]
struct Edges {
    start: bool,
    end: bool,
}

struct Expansion {
    /// Bytes that are left.
    allowance: usize,
}

type Listed = Option<Vec<Vec<u8>>>;

impl Expansion {
    fn take(&mut self, bytes: usize) -> Option<()> {
        self.allowance = self.allowance.checked_sub(bytes)?;
        Some(())
    }

    fn literal(&mut self, bytes: &[u8]) -> Listed {
        self.take(bytes.len() + 1)?;
        Some(vec![bytes.to_vec()])
    }

    /// As deep as the expression, whose depth the parser limits.
    fn list(&mut self, hir: &Hir, edges: Edges) -> Listed {
        match hir.kind() {
            HirKind::Empty => self.literal(b""),
            HirKind::Look(Look::Start) if edges.start => self.literal(b""),
            HirKind::Look(Look::End) if edges.end => self.literal(b""),
            HirKind::Literal(literal) => self.literal(&literal.0),
            HirKind::Class(class) => self.class(class),
            HirKind::Capture(capture) => self.list(&capture.sub, edges),
            HirKind::Concat(parts) => self.concat(parts, edges),
            HirKind::Alternation(branches) => {
                let mut listed = Vec::new();
                for branch in branches {
                    listed.append(&mut self.list(branch, edges)?);
                }
                Some(listed)
            }
            HirKind::Repetition(Repetition {
                min: 0,
                max: Some(1),
                sub,
                ..
            }) => {
                let mut listed = self.list(sub, Edges::default())?;
                listed.append(&mut self.literal(b"")?);
                Some(listed)
            }
            HirKind::Look(_) | HirKind::Repetition(_) => None,
        }
    }

    fn class(&mut self, class: &Class) -> Listed {
        match class {
            Class::Unicode(class) => {
                let chars: usize = class.iter().map(|range| range.len()).sum();
                // A character has four bytes at most.
                self.take(5 * chars)?;
                let chars = class.iter().flat_map(|range| range.start()..=range.end());
                Some(chars.map(|one| one.to_string().into_bytes()).collect())
            }
            Class::Bytes(class) => {
                let bytes = class.iter().flat_map(|range| range.start()..=range.end());
                let listed: Vec<_> = bytes.map(|byte| vec![byte]).collect();
                self.take(2 * listed.len())?;
                Some(listed)
            }
        }
    }

    fn concat(&mut self, parts: &[Hir], edges: Edges) -> Listed {
        let mut listed = vec![Vec::new()];
        for (at, part) in parts.iter().enumerate() {
            let edges = Edges {
                start: edges.start && at == 0,
                end: edges.end && at + 1 == parts.len(),
            };
            let tails = self.list(part, edges)?;
            listed = self.joined(listed, &tails)?;
        }
        Some(listed)
    }

    /// Every head with every tail behind.
    fn joined(&mut self, mut heads: Vec<Vec<u8>>, tails: &[Vec<u8>]) -> Listed {
        if let [tail] = tails {
            self.take(heads.len() * tail.len())?;
            if !tail.is_empty() {
                heads.iter_mut().for_each(|head| head.extend(tail));
            }
            return Some(heads);
        }
        let bytes_of = |list: &[Vec<u8>]| list.iter().map(Vec::len).sum::<usize>();
        let count = heads.len() * tails.len();
        let bytes = bytes_of(&heads) * tails.len() + bytes_of(tails) * heads.len();
        self.take(bytes + count)?;
        let all = heads
            .iter()
            .flat_map(|head| tails.iter().map(move |tail| [&head[..], tail].concat()));
        Some(all.collect())
    }
}
