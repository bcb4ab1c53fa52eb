//! A parsed template becomes one that follows Go's types.
//!
//! `x.a.b c` becomes `field (field x "a") "b" c`, so that [`super::functions`] decide what a missing
//! field is, and what a method; what an action prints goes through `shown`. Names of functions and
//! variables are checked on the way, as Go does when it parses.

use crate::template::functions::{FIELD, FUNCTIONS, SHOWN};
use gotmpl::parse::{
    BranchNode, CommandNode, Expr, ListNode, Node, PipeNode, Pos, SmolStr, TemplateNode,
};

/// The functions of text/template itself.
#[rustfmt::skip]
const BUILT_IN: [&str; 19] = [
    "and", "call", "eq", "ge", "gt", "html", "index", "js", "le", "len", "lt", "ne", "not", "or",
    "print", "printf", "println", "slice", "urlquery",
];

/// A name that nothing has.
pub(super) struct Unknown {
    line: usize,
    what: String,
}

impl Unknown {
    /// In the words of Go.
    pub(super) fn of(&self, template: &str) -> String {
        format!("template: {template}:{}: {}", self.line, self.what)
    }
}

type Done = Result<(), Unknown>;

/// Rewrites a whole template.
pub(super) fn main(tree: &mut ListNode) -> Done {
    Scope::default().list(tree)
}

/// Rewrites a template that others call; it has no variables but `$`.
pub(super) fn define(tree: &mut ListNode) -> Done {
    Scope::default().list(tree)
}

/// The variables that are declared here.
#[derive(Default)]
struct Scope(Vec<SmolStr>);

impl Scope {
    /// What `part` declares ends with it.
    fn within(&mut self, part: impl FnOnce(&mut Self) -> Done) -> Done {
        let held = self.0.len();
        let done = part(self);
        self.0.truncate(held);
        done
    }

    fn list(&mut self, list: &mut ListNode) -> Done {
        list.nodes.iter_mut().try_for_each(|node| self.node(node))
    }

    fn node(&mut self, node: &mut Node) -> Done {
        match node {
            Node::List(list) => self.list(list),
            Node::Action(action) => {
                self.pipe(&mut action.pipe)?;
                if action.pipe.decl.is_empty() {
                    let shown = Expr::Identifier(action.pos, SHOWN.into());
                    action.pipe.commands.push(CommandNode {
                        pos: action.pos,
                        args: vec![shown],
                    });
                }
                Ok(())
            }
            Node::If(branch) | Node::Range(branch) | Node::With(branch) => self.branch(branch),
            Node::Template(TemplateNode { pipe, .. }) => {
                pipe.as_mut().map_or(Ok(()), |pipe| self.pipe(pipe))
            }
            Node::Define(define) => Self::default().list(&mut define.body),
            Node::Text(_) | Node::Break(_) | Node::Continue(_) => Ok(()),
        }
    }

    fn branch(&mut self, branch: &mut BranchNode) -> Done {
        self.within(|scope| {
            scope.pipe(&mut branch.pipe)?;
            scope.within(|scope| scope.list(&mut branch.body))?;
            let other = branch.else_body.as_mut();
            scope.within(|scope| other.map_or(Ok(()), |other| scope.list(other)))
        })
    }

    fn pipe(&mut self, pipe: &mut PipeNode) -> Done {
        for command in &mut pipe.commands {
            self.command(command)?;
        }
        if pipe.is_assign {
            for name in &pipe.decl {
                self.variable(name, pipe.pos)?;
            }
        } else {
            self.0.extend(pipe.decl.iter().cloned());
        }
        Ok(())
    }

    fn command(&mut self, command: &mut CommandNode) -> Done {
        let mut args = std::mem::take(&mut command.args).into_iter();
        if let Some(first) = args.next() {
            // What follows are its arguments.
            command.args = self.unfolded(first)?;
        }
        for arg in args {
            let pos = arg.pos();
            let mut unfolded = self.unfolded(arg)?;
            command
                .args
                .push(match (unfolded.pop(), unfolded.is_empty()) {
                    (Some(only), true) => only,
                    (last, _) => {
                        unfolded.extend(last);
                        called(pos, unfolded)
                    }
                });
        }
        Ok(())
    }

    /// An expression as the words of a command: one, or a call of `field`.
    fn unfolded(&mut self, expr: Expr) -> Result<Vec<Expr>, Unknown> {
        let pos = expr.pos();
        let (base, fields) = match expr {
            Expr::Field(_, fields) => (Expr::Dot(pos), fields),
            Expr::Variable(_, name, fields) => {
                self.variable(&name, pos)?;
                (Expr::Variable(pos, name, Vec::new()), fields)
            }
            Expr::Chain(_, base, fields) => {
                let mut base = self.unfolded(*base)?;
                let base = match base.len() {
                    1 => base.remove(0),
                    _ => called(pos, base),
                };
                (base, fields)
            }
            Expr::Pipe(_, mut pipe) => {
                self.pipe(&mut pipe)?;
                return Ok(vec![Expr::Pipe(pos, pipe)]);
            }
            Expr::Identifier(_, name) => {
                if !BUILT_IN.contains(&&*name) && !FUNCTIONS.contains_key(&*name) {
                    return Err(unknown(pos, format!("function {:?} not defined", &*name)));
                }
                return Ok(vec![Expr::Identifier(pos, name)]);
            }
            other => return Ok(vec![other]),
        };
        let mut words = vec![base];
        for field in fields {
            let base = match words.len() {
                1 => words.remove(0),
                _ => called(pos, words),
            };
            let name = Expr::String(pos, field.as_str().into());
            words = vec![Expr::Identifier(pos, FIELD.into()), base, name];
        }
        Ok(words)
    }

    fn variable(&self, name: &str, pos: Pos) -> Done {
        if name == "$" || self.0.iter().any(|held| held == name) {
            Ok(())
        } else {
            Err(unknown(pos, format!("undefined variable {name:?}")))
        }
    }
}

fn unknown(pos: Pos, what: String) -> Unknown {
    let line = pos.line;
    Unknown { line, what }
}

/// A command in parentheses.
fn called(pos: Pos, args: Vec<Expr>) -> Expr {
    let commands = vec![CommandNode { pos, args }];
    Expr::Pipe(
        pos,
        PipeNode {
            pos,
            decl: Vec::new(),
            commands,
            is_assign: false,
        },
    )
}
