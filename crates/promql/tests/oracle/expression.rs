//! Random expressions as trees of text that can be cut down.

/// What a part may be replaced by: anything of the same kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Scalar,
    Vector,
    Matrix,
    /// A text in quotes.
    Text,
    /// A length of time.
    Duration,
    /// What may be left out.
    Optional,
}

/// A piece of the text.
#[derive(Clone, Debug)]
pub(crate) enum Part {
    Text(String),
    Expr(Expr),
}

/// An expression.
#[derive(Clone, Debug)]
pub(crate) struct Expr {
    pub(crate) kind: Kind,
    pub(crate) parts: Vec<Part>,
}

impl Expr {
    /// Of text alone.
    pub(crate) fn leaf(kind: Kind, text: impl Into<String>) -> Self {
        let parts = vec![Part::Text(text.into())];
        Self { kind, parts }
    }

    /// Of a pattern: each `#` is the next of `exprs`.
    pub(crate) fn of(kind: Kind, pattern: &str, exprs: impl IntoIterator<Item = Self>) -> Self {
        let mut exprs = exprs.into_iter();
        let mut parts = Vec::new();
        for (at, text) in pattern.split('#').enumerate() {
            if at > 0 {
                parts.push(Part::Expr(exprs.next().expect("an expression for each #")));
            }
            if !text.is_empty() {
                parts.push(Part::Text(text.to_owned()));
            }
        }
        assert!(exprs.next().is_none(), "too many expressions");
        Self { kind, parts }
    }

    /// Its text.
    pub(crate) fn text(&self) -> String {
        let mut out = String::new();
        self.push(&mut out);
        out
    }

    fn push(&self, out: &mut String) {
        for part in &self.parts {
            match part {
                Part::Text(text) => out.push_str(text),
                Part::Expr(expr) => expr.push(out),
            }
        }
    }

    /// The simplest ones of a kind.
    fn simplest(kind: Kind) -> &'static [&'static str] {
        match kind {
            Kind::Scalar => &["1"],
            Kind::Vector => &["m", "c_total"],
            Kind::Matrix => &["m[2m]", "c_total[2m]"],
            Kind::Text => &["\"a\""],
            Kind::Duration => &["1m"],
            Kind::Optional => &[""],
        }
    }

    fn children(&self) -> impl Iterator<Item = &Self> {
        self.parts.iter().filter_map(|part| match part {
            Part::Expr(expr) => Some(expr),
            Part::Text(_) => None,
        })
    }

    fn descendants<'a>(&'a self, kind: Kind, out: &mut Vec<&'a Self>) {
        for child in self.children() {
            if child.kind == kind {
                out.push(child);
            }
            child.descendants(kind, out);
        }
    }

    /// All expressions with one part of this one made simpler, shortest first.
    pub(crate) fn simpler(&self) -> Vec<Self> {
        let mut out = Vec::new();
        let mut inner = Vec::new();
        self.descendants(self.kind, &mut inner);
        out.extend(inner.into_iter().cloned());
        let text = self.text();
        let leaves = Self::simplest(self.kind).iter();
        out.extend(leaves.map(|leaf| Self::leaf(self.kind, *leaf)));
        for (at, part) in self.parts.iter().enumerate() {
            let Part::Expr(child) = part else { continue };
            for child in child.simpler() {
                let mut copy = self.clone();
                copy.parts[at] = Part::Expr(child);
                out.push(copy);
            }
        }
        out.retain(|simpler| simpler.text().len() < text.len());
        out.sort_by_key(|simpler| simpler.text().len());
        out
    }
}

/// The shortest expression found that still `differs`, in at most `tries`.
pub(crate) fn shrink(expr: &Expr, mut tries: usize, mut differs: impl FnMut(&str) -> bool) -> Expr {
    let mut best = expr.clone();
    'again: loop {
        for simpler in best.simpler() {
            if tries == 0 {
                return best;
            }
            tries -= 1;
            if differs(&simpler.text()) {
                best = simpler;
                continue 'again;
            }
        }
        return best;
    }
}
