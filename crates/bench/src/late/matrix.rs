//! The axes of a matrix: which cells to measure, and how often.

use clap::ValueEnum;

use super::{Cell, Encoding};
use crate::error::{Error, Result};
use crate::workload::LateShape;

/// The values along each axis.
#[derive(Debug)]
pub(super) struct Axes {
    late_percents: Vec<f64>,
    encodings: Vec<Encoding>,
    chunk_sizes: Vec<u32>,
    pipelines: Vec<usize>,
    connections: Vec<usize>,
    policies: Vec<String>,
    rules: Vec<usize>,
    shapes: Vec<LateShape>,
    /// Runs of each cell.
    pub(super) repeats: usize,
}

impl Axes {
    /// Reads words such as `late=0,99`; an axis that is not named keeps its full range;
    /// policy, rules and shape keep those of `base`.
    ///
    /// # Errors
    /// When an axis or a value is unknown.
    pub(super) fn parse(words: &[String], base: &Cell) -> Result<Self> {
        let mut axes = Axes {
            late_percents: vec![0.0, 1.0, 5.0, 10.0, 25.0, 50.0, 99.0],
            encodings: vec![Encoding::Compressed, Encoding::Uncompressed],
            chunk_sizes: vec![256, 4096],
            pipelines: vec![1, 50],
            connections: vec![1, 8, 64],
            policies: vec![base.policy.clone()],
            rules: vec![base.rules],
            shapes: vec![base.shape],
            repeats: 5,
        };
        for word in words {
            let wrong = || Error::new(format!("--matrix does not know {word:?}"));
            let (axis, values) = word.split_once('=').ok_or_else(wrong)?;
            let values: Vec<&str> = values.split(',').collect();
            match axis {
                "late" => {
                    axes.late_percents =
                        all(&values, |v| super::percent(v).ok()).ok_or_else(wrong)?;
                }
                "encoding" => axes.encodings = all(&values, encoding).ok_or_else(wrong)?,
                "chunk" => axes.chunk_sizes = all(&values, |v| v.parse().ok()).ok_or_else(wrong)?,
                "pipeline" => axes.pipelines = all(&values, count).ok_or_else(wrong)?,
                "connections" => axes.connections = all(&values, count).ok_or_else(wrong)?,
                "policy" => axes.policies = values.iter().map(|v| v.to_uppercase()).collect(),
                "rules" => {
                    axes.rules = all(&values, |v| super::rule_count(v).ok()).ok_or_else(wrong)?;
                }
                "shape" => {
                    let shape = |v: &str| LateShape::from_str(v, false).ok();
                    axes.shapes = all(&values, shape).ok_or_else(wrong)?;
                }
                "repeats" => axes.repeats = count(values[0]).ok_or_else(wrong)?,
                _ => return Err(wrong()),
            }
        }
        Ok(axes)
    }

    /// Every combination, the late share changing fastest. The total number of samples is that
    /// of `base`; each connection has a series of its own at least.
    pub(super) fn cells(&self, base: &Cell) -> Vec<Cell> {
        let mut cells = vec![base.clone()];
        cells = vary(&cells, &self.policies, |cell, value| cell.policy = value);
        cells = vary(&cells, &self.rules, |cell, value| cell.rules = value);
        cells = vary(&cells, &self.shapes, |cell, value| cell.shape = value);
        cells = vary(&cells, &self.connections, |cell, value| {
            cell.connections = value;
            cell.series = base.series.max(value as u64);
            cell.samples = (base.series * base.samples / cell.series).max(1);
        });
        cells = vary(&cells, &self.pipelines, |cell, value| cell.pipeline = value);
        cells = vary(&cells, &self.chunk_sizes, |cell, value| {
            cell.chunk_size = value
        });
        cells = vary(&cells, &self.encodings, |cell, value| cell.encoding = value);
        vary(&cells, &self.late_percents, |cell, value| {
            cell.late_percent = value
        })
    }
}

fn vary<T: Clone>(cells: &[Cell], values: &[T], set: impl Fn(&mut Cell, T)) -> Vec<Cell> {
    let with = |cell: &Cell, value: &T| {
        let mut cell = cell.clone();
        set(&mut cell, value.clone());
        cell
    };
    cells
        .iter()
        .flat_map(|cell| values.iter().map(move |value| (cell, value)))
        .map(|(cell, value)| with(cell, value))
        .collect()
}

fn all<T>(values: &[&str], read: impl Fn(&str) -> Option<T>) -> Option<Vec<T>> {
    values.iter().map(|value| read(value)).collect()
}

fn count(value: &str) -> Option<usize> {
    super::positive(value).ok()
}

fn encoding(value: &str) -> Option<Encoding> {
    match value {
        "compressed" => Some(Encoding::Compressed),
        "uncompressed" => Some(Encoding::Uncompressed),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn base() -> Cell {
        Cell {
            late_percent: 0.0,
            encoding: Encoding::Compressed,
            chunk_size: 4096,
            pipeline: 50,
            connections: 8,
            policy: String::new(),
            series: 8,
            samples: 1000,
            rules: 0,
            shape: LateShape::Uniform,
        }
    }

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn the_whole_matrix_is_that_of_the_public_comparison() {
        let axes = Axes::parse(&[], &base()).unwrap();
        let cells = axes.cells(&base());
        assert_eq!(cells.len(), 7 * 2 * 2 * 2 * 3);
        assert_eq!(axes.repeats, 5);
        assert!(
            cells
                .iter()
                .all(|cell| cell.series >= cell.connections as u64)
        );
        assert!(cells.iter().all(|cell| cell.series * cell.samples == 8000));
    }

    #[test]
    fn a_part_is_chosen_by_axes() {
        let text = "late=0,99 encoding=uncompressed chunk=256 pipeline=1 connections=64 policy=last,BLOCK repeats=2";
        let axes = Axes::parse(&words(text), &base()).unwrap();
        let cells = axes.cells(&base());
        assert_eq!(cells.len(), 4);
        assert_eq!(axes.repeats, 2);
        assert_eq!(
            (cells[1].late_percent, cells[1].policy.as_str()),
            (99.0, "LAST")
        );
        assert_eq!(
            (cells[2].late_percent, cells[2].policy.as_str()),
            (0.0, "BLOCK")
        );
        assert_eq!((cells[0].series, cells[0].samples), (64, 125));
    }

    #[test]
    fn rules_are_an_axis() {
        let text = "late=0,99 encoding=compressed chunk=4096 pipeline=50 connections=8 rules=0,5";
        let cells = Axes::parse(&words(text), &base()).unwrap().cells(&base());
        let rules: Vec<_> = cells.iter().map(|c| (c.rules, c.late_percent)).collect();
        assert_eq!(rules, [(0, 0.0), (0, 99.0), (5, 0.0), (5, 99.0)]);
    }

    #[test]
    fn shapes_are_an_axis() {
        let text = "late=10 encoding=compressed chunk=4096 pipeline=50 connections=8 \
                    shape=uniform,device-day";
        let cells = Axes::parse(&words(text), &base()).unwrap().cells(&base());
        let shapes: Vec<_> = cells.iter().map(|cell| cell.shape).collect();
        assert_eq!(shapes, [LateShape::Uniform, LateShape::DeviceDay]);
    }

    #[test]
    fn unknown_words_are_refused() {
        for text in [
            "late",
            "late=-1",
            "late=101",
            "pipeline=0",
            "color=red",
            "encoding=zip",
            "rules=6",
            "shape=round",
        ] {
            assert!(Axes::parse(&words(text), &base()).is_err(), "{text}");
        }
    }
}
