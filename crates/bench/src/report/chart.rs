//! Line charts against the share of late samples, as SVG.

use plotters::prelude::*;

use super::statistics::{Spread, axis_label};
use crate::error::{Error, Result};

/// Size of a chart, pixels.
const SIZE: (u32, u32) = (900, 480);
/// Width of the plot itself; the legend stands to the right of it.
const PLOT_WIDTH: u32 = 690;
/// One colour for each server; they stay apart for the colour-blind and on paper (Okabe, Ito).
pub(super) const COLORS: [RGBColor; 5] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(90, 90, 90),
];

/// A chart with the late share along the bottom.
#[derive(Clone, Debug)]
pub(super) struct Chart {
    /// Name of the file.
    pub(super) file: String,
    /// What it shows.
    pub(super) title: String,
    /// Quantity and unit of the vertical axis, which begins at 0.
    pub(super) y_label: String,
    /// The lines.
    pub(super) lines: Vec<Line>,
}

/// One line of a chart.
#[derive(Clone, Debug)]
pub(super) struct Line {
    /// Its name in the legend.
    pub(super) name: String,
    /// Which server it belongs to; decides the colour.
    pub(super) family: usize,
    /// Whether it is dashed.
    pub(super) dashed: bool,
    /// Late percent, and the values of all runs there.
    pub(super) points: Vec<(f64, Spread)>,
}

/// Draws charts: the name of the file of each, and its drawing.
///
/// # Errors
/// When the drawing library fails.
pub(super) fn draw_all(charts: &[Chart]) -> Result<Vec<(String, String)>> {
    let drawn = |chart: &Chart| Ok((chart.file.clone(), draw(chart)?));
    charts.iter().map(drawn).collect()
}

/// Draws a chart.
///
/// # Errors
/// When the drawing library fails.
pub(super) fn draw(chart: &Chart) -> Result<String> {
    let mut svg = String::new();
    draw_into(chart, &mut svg)
        .map_err(|error| Error::new(format!("draw {}: {error}", chart.file)))?;
    svg.push('\n');
    Ok(svg)
}

type Drawn = std::result::Result<(), Box<dyn std::error::Error>>;

fn draw_into(chart: &Chart, svg: &mut String) -> Drawn {
    let root = SVGBackend::with_string(svg, SIZE).into_drawing_area();
    root.fill(&WHITE)?;
    let title = ("sans-serif", 18).into_font();
    let root = root.titled(&chart.title, title)?;
    let (plot, legend) = root.split_horizontally(PLOT_WIDTH);
    let (top, step) = y_scale(highest(chart));
    let mut context = ChartBuilder::on(&plot)
        .margin(12)
        .x_label_area_size(44)
        .y_label_area_size(76)
        .build_cartesian_2d(-1.5..101.0, 0.0..top)?;
    context
        .configure_mesh()
        .x_desc("late samples, percent of all")
        .y_desc(&chart.y_label)
        .x_labels(11)
        .y_labels((top / step).round() as usize + 2)
        .x_label_formatter(&|x| format!("{x:.0}"))
        .y_label_formatter(&|y| axis_label(*y, step))
        .label_style(("sans-serif", 13))
        .axis_desc_style(("sans-serif", 15))
        .light_line_style(TRANSPARENT)
        .draw()?;
    for line in &chart.lines {
        let style = style(line);
        let medians = line.points.iter().map(|(late, y)| (*late, y.median));
        if line.dashed {
            context.draw_series(DashedLineSeries::new(medians.clone(), 6, 4, style))?;
        } else {
            context.draw_series(LineSeries::new(medians.clone(), style))?;
        }
        context.draw_series(medians.map(|at| Circle::new(at, 3, style.filled())))?;
        let ends = |(late, y): &(f64, Spread)| {
            PathElement::new(vec![(*late, y.min), (*late, y.max)], style.stroke_width(1))
        };
        context.draw_series(line.points.iter().map(ends))?;
    }
    for (row, line) in chart.lines.iter().enumerate() {
        let y = 24 + 40 * row as i32;
        let sample = if line.dashed {
            vec![(4, 14), (22, 32)]
        } else {
            vec![(4, 32)]
        };
        for (from, to) in sample {
            legend.draw(&PathElement::new(vec![(from, y), (to, y)], style(line)))?;
        }
        let (server, encoding) = line.name.rsplit_once(", ").unwrap_or((&line.name, ""));
        legend.draw(&Text::new(server, (40, y - 8), ("sans-serif", 14)))?;
        legend.draw(&Text::new(encoding, (40, y + 8), ("sans-serif", 13)))?;
    }
    root.present()?;
    Ok(())
}

fn style(line: &Line) -> ShapeStyle {
    COLORS[line.family % COLORS.len()].stroke_width(2)
}

fn highest(chart: &Chart) -> f64 {
    let points = chart.lines.iter().flat_map(|line| &line.points);
    points.map(|(_, y)| y.max).fold(0.0, f64::max)
}

/// A round top above `highest`, and the distance of the marks below it.
pub(super) fn y_scale(highest: f64) -> (f64, f64) {
    if !highest.is_finite() || highest <= 0.0 {
        return (1.0, 0.2);
    }
    let raw = highest / 7.0;
    let unit = 10f64.powf(raw.log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0];
    let step = steps
        .iter()
        .map(|s| s * unit)
        .find(|step| *step >= raw)
        .unwrap_or(10.0 * unit);
    ((highest / step).ceil() * step, step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scale_is_round_and_high_enough() {
        for highest in [0.37, 1.0, 6.0, 699.0, 3_214.0, 1e6] {
            let (top, step) = y_scale(highest);
            assert!(top >= highest && top < highest * 1.5, "{highest}: {top}");
            let marks = top / step;
            assert!((marks - marks.round()).abs() < 1e-9 && (4.0..=10.0).contains(&marks));
        }
        assert_eq!(y_scale(0.0), (1.0, 0.2));
        assert_eq!(y_scale(f64::NAN), (1.0, 0.2));
    }

    #[test]
    fn a_chart_names_its_axes_and_lines() {
        let value = |v| Spread {
            median: v,
            min: v * 0.9,
            max: v * 1.1,
        };
        let chart = Chart {
            file: "a.svg".into(),
            title: "Rate of something".into(),
            y_label: "thousand per second".into(),
            lines: vec![
                Line {
                    name: "One, compressed".into(),
                    family: 0,
                    dashed: false,
                    points: vec![(0.0, value(10.0)), (99.0, value(9.0))],
                },
                Line {
                    name: "Two, uncompressed".into(),
                    family: 1,
                    dashed: true,
                    points: vec![(0.0, value(5.0)), (99.0, value(1.0))],
                },
            ],
        };
        let svg = draw(&chart).unwrap();
        for text in [
            "Rate of something",
            "thousand per second",
            "late samples, percent of all",
            "One",
            "Two",
            "uncompressed",
        ] {
            assert!(svg.contains(text), "{text} is missing");
        }
    }
}
