//! Strongly connected components: Tarjan's algorithm, without recursion.

/// The components of a graph, each ascending, in an order in which whatever is fed comes first.
pub(super) fn components(next: &[Vec<usize>]) -> Vec<Vec<usize>> {
    let mut search = Search {
        next,
        places: vec![None; next.len()],
        lowest: vec![0; next.len()],
        is_open: vec![false; next.len()],
        stack: Vec::new(),
        seen: 0,
        found: Vec::new(),
    };
    for start in 0..next.len() {
        if search.places[start].is_none() {
            search.visit(start);
        }
    }
    search.found
}

struct Search<'a> {
    next: &'a [Vec<usize>],
    /// In which order each was seen.
    places: Vec<Option<usize>>,
    /// The earliest one that can be reached and is open.
    lowest: Vec<usize>,
    /// Its component is not known yet.
    is_open: Vec<bool>,
    stack: Vec<usize>,
    seen: usize,
    found: Vec<Vec<usize>>,
}

impl Search<'_> {
    fn open(&mut self, at: usize) {
        self.places[at] = Some(self.seen);
        self.lowest[at] = self.seen;
        self.is_open[at] = true;
        self.seen += 1;
        self.stack.push(at);
    }

    fn visit(&mut self, start: usize) {
        self.open(start);
        // Nodes on the way, and how many of their edges were followed.
        let mut way = vec![(start, 0)];
        while let Some((at, followed)) = way.last_mut() {
            let at = *at;
            let Some(to) = self.next[at].get(*followed).copied() else {
                way.pop();
                if let Some((before, _)) = way.last() {
                    self.lowest[*before] = self.lowest[*before].min(self.lowest[at]);
                }
                if self.places[at] == Some(self.lowest[at]) {
                    self.close(at);
                }
                continue;
            };
            *followed += 1;
            match self.places[to] {
                None => {
                    self.open(to);
                    way.push((to, 0));
                }
                Some(place) if self.is_open[to] => {
                    self.lowest[at] = self.lowest[at].min(place);
                }
                Some(_) => {}
            }
        }
    }

    fn close(&mut self, first: usize) {
        let mut component = Vec::new();
        while let Some(at) = self.stack.pop() {
            self.is_open[at] = false;
            component.push(at);
            if at == first {
                break;
            }
        }
        component.sort_unstable();
        self.found.push(component);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn components_are_found() {
        let next = [vec![1], vec![2], vec![0, 3], vec![4], vec![], vec![5]];
        assert_eq!(
            components(&next),
            [vec![4], vec![3], vec![0, 1, 2], vec![5]]
        );
        // A long way is no deep stack.
        let long: Vec<Vec<usize>> = (0..100_000).map(|at| vec![(at + 1) % 100_000]).collect();
        assert_eq!(components(&long).len(), 1);
    }
}
