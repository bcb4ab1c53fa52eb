//! The time that selectors look at, for `info`.

use crate::tree::{At, Expr, Subquery, Type};

/// Whether all vectors in an expression come from selectors of one `@` and offset.
pub(crate) fn has_one_reference(expr: &Expr) -> bool {
    reference(expr).is_some()
}

/// `@` and offset of a selector with the subqueries around it, milliseconds.
pub(crate) type Reference = (Option<i64>, i64);

/// The one `@` and offset of all selectors in an expression; `None` where there is none, where
/// there are several, or where a vector comes from elsewhere.
pub(crate) fn reference(expr: &Expr) -> Option<Reference> {
    let mut found = Search::default();
    found.visit(expr, &mut Vec::new());
    found.first.filter(|_| !found.is_mixed)
}

#[derive(Default)]
struct Search {
    first: Option<Reference>,
    is_mixed: bool,
}

impl Search {
    /// Whether the expression holds a selector.
    fn visit<'e>(&mut self, expr: &'e Expr, around: &mut Vec<&'e Subquery>) -> bool {
        if !matches!(expr.ty(), Type::Vector | Type::Matrix) {
            return false;
        }
        let has_selector = match expr {
            Expr::Selector(selector) => {
                self.selector(at(selector.at), selector.offset.millis(), around);
                return true;
            }
            Expr::Range(range) => {
                let selector = &range.selector;
                self.selector(at(selector.at), selector.offset.millis(), around);
                return true;
            }
            Expr::Subquery(subquery) => {
                around.push(subquery);
                let has_selector = self.visit(&subquery.expr, around);
                around.pop();
                has_selector
            }
            Expr::Paren(inner, _) | Expr::Invariant(inner) => self.visit(inner, around),
            Expr::Unary(unary) => self.visit(&unary.expr, around),
            // Both sides are visited.
            Expr::Binary(binary) => {
                self.visit(&binary.left, around) | self.visit(&binary.right, around)
            }
            Expr::Aggregate(aggregate) => {
                let has_selector = self.visit(&aggregate.expr, around);
                let params = aggregate.param.iter();
                params.fold(has_selector, |has, param| has | self.visit(param, around))
            }
            // Of `info`, only the first argument is a vector.
            Expr::Call(call) if call.function.name == "info" => {
                return self.visit(&call.args[0], around);
            }
            Expr::Call(call) => {
                let args = call.args.iter();
                args.fold(false, |has, arg| has | self.visit(arg, around))
            }
            Expr::Number(_) | Expr::Text(_) | Expr::Duration(_) => false,
        };
        self.is_mixed |= !has_selector;
        has_selector
    }

    fn selector(&mut self, at_ms: Option<i64>, offset_ms: i64, around: &[&Subquery]) {
        let mut here = (at_ms, offset_ms);
        for subquery in around.iter().rev() {
            if here.0.is_some() {
                break;
            }
            here = (
                at(subquery.at),
                here.1.saturating_add(subquery.offset.millis()),
            );
        }
        let first = *self.first.get_or_insert(here);
        self.is_mixed |= match (first.0, here.0) {
            (Some(first_at), Some(here_at)) => {
                first_at.saturating_sub(first.1) != here_at.saturating_sub(here.1)
            }
            _ => first != here,
        };
    }
}

fn at(at: Option<At>) -> Option<i64> {
    match at {
        Some(At::Time(millis)) => Some(millis),
        _ => None,
    }
}
