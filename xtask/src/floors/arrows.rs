//! The arrows of a crate: which file imports a name from which.
//!
//! Modules are located as rustc does, and re-exports are followed to the file that defines a
//! name. A `use` of a module alone is not an arrow; the paths that go through it are. Tested in
//! [`super`].

use std::collections::{BTreeMap, BTreeSet};

use super::source::{self, Fact, Kind};

/// The first line by which a file imports from another.
pub(super) type Arrows = BTreeMap<(String, String), usize>;

type Path = Vec<String>;

#[derive(Default)]
struct Module {
    file: String,
    definitions: BTreeSet<String>,
    /// Imported names and their paths.
    imports: Vec<(String, Path)>,
}

enum Target {
    Module(Path),
    /// An item defined in this file.
    Item(String),
}

/// The modules of a crate from one root, `lib.rs` or `main.rs`.
#[derive(Default)]
struct Tree {
    modules: BTreeMap<Path, Module>,
    /// Module and line of each import and path, and whether it is a glob.
    places: Vec<(Path, usize, Path, bool)>,
}

/// The arrows between files of the crate with the source folder `src`, such as
/// `crates/model/src/`.
pub(super) fn arrows(files: &BTreeMap<String, String>, src: &str) -> Arrows {
    let mut arrows = Arrows::new();
    for root in ["lib.rs", "main.rs"] {
        let mut tree = Tree::default();
        tree.read(files, Path::new(), format!("{src}{root}"), src.to_owned());
        for (module, line, path, through) in &tree.places {
            let from = &tree.modules[module].file;
            let to = match tree.resolve(module, path, 0) {
                Some(Target::Item(file)) => file,
                Some(Target::Module(path)) if *through => tree.modules[&path].file.clone(),
                _ => continue,
            };
            if *from != to {
                let first = arrows.entry((from.clone(), to)).or_insert(*line);
                *first = (*first).min(*line);
            }
        }
    }
    arrows
}

impl Tree {
    /// Reads the module in `file`, whose own modules are in `folder`.
    fn read(&mut self, files: &BTreeMap<String, String>, at: Path, file: String, folder: String) {
        let Some(text) = files.get(&file) else {
            return;
        };
        let new = || Module {
            file: file.clone(),
            ..Module::default()
        };
        self.modules.insert(at.clone(), new());
        for Fact { scope, line, kind } in source::read(text) {
            let here = [at.as_slice(), &scope].concat();
            let module = self.modules.entry(here.clone()).or_insert_with(new);
            match kind {
                Kind::Definition(name) => _ = module.definitions.insert(name),
                Kind::Path(path) => self.places.push((here, line, path, false)),
                Kind::Use { path, alias } => {
                    self.places.push((here, line, path.clone(), alias == "*"));
                    module.imports.push((alias, path));
                }
                Kind::Module { name, inline } => {
                    let inner = [here.as_slice(), std::slice::from_ref(&name)].concat();
                    if inline {
                        self.modules.insert(inner, new());
                        continue;
                    }
                    let base = scope.iter().fold(folder.clone(), |f, name| f + name + "/");
                    let inside = format!("{base}{name}/");
                    let mut places = [format!("{base}{name}.rs"), format!("{inside}mod.rs")];
                    let place = places.iter_mut().find(|file| files.contains_key(*file));
                    if let Some(place) = place {
                        self.read(files, inner, std::mem::take(place), inside);
                    }
                }
            }
        }
    }

    /// The target of a path in `module`; `None` if it is outside the crate.
    fn resolve(&self, module: &[String], path: &[String], depth: usize) -> Option<Target> {
        let (first, mut rest) = path.split_first()?;
        let mut at = module.to_vec();
        match first.as_str() {
            "crate" => at.clear(),
            "self" => {}
            "super" => _ = at.pop(),
            first => match self.lookup(&at, first, rest.is_empty(), depth)? {
                Target::Module(path) => at = path,
                item => return Some(item),
            },
        }
        while let Some((name, behind)) = rest.split_first() {
            match self.lookup(&at, name, behind.is_empty(), depth) {
                Some(Target::Module(path)) => at = path,
                None if name == "super" => _ = at.pop(),
                None => return Some(Target::Item(self.modules.get(&at)?.file.clone())),
                item => return item,
            }
            rest = behind;
        }
        self.modules.contains_key(&at).then_some(Target::Module(at))
    }

    /// The target of `name` in `module`. If an item and a module share it, the last word of a path
    /// is the item, an earlier one the module.
    fn lookup(&self, module: &[String], name: &str, last: bool, depth: usize) -> Option<Target> {
        // Bounds imports of themselves and circles of globs.
        if depth > 8 {
            return None;
        }
        let inner = [module, &[name.to_owned()]].concat();
        let is_module = self.modules.contains_key(&inner);
        if is_module && !last {
            return Some(Target::Module(inner));
        }
        let inside = self.modules.get(module)?;
        if inside.definitions.contains(name) {
            return Some(Target::Item(inside.file.clone()));
        }
        let mut named = inside.imports.iter().filter(|(alias, _)| alias == name);
        if let Some((_, path)) = named.next() {
            return self.resolve(module, path, depth + 1);
        }
        if is_module {
            return Some(Target::Module(inner));
        }
        let globs = inside.imports.iter().filter(|(alias, _)| alias == "*");
        let mut modules = globs.filter_map(|(_, path)| self.resolve(module, path, depth + 1));
        modules.find_map(|target| match target {
            Target::Module(path) => self.lookup(&path, name, last, depth + 1),
            Target::Item(_) => None,
        })
    }
}
