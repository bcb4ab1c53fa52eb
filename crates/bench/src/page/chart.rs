//! Line charts as SVG: figures against the share of late samples, and panels over time.

use plotters::coord::Shift;
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;

use crate::base::error::{Error, Result};
use crate::measure::statistics::{Spread, thousands};

/// Size of a chart of shares, pixels; the legend stands to the right of the plot.
const SIZE: (u32, u32) = (900, 480);
const PLOT_WIDTH: u32 = 690;
/// Height of each panel of a chart over time, and of its title and legend.
const PANEL_HEIGHT: u32 = 220;
const HEAD_HEIGHT: u32 = 60;
/// One colour for each server; they stay apart for the colour-blind and on paper (Okabe, Ito).
const COLORS: [RGBColor; 5] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(90, 90, 90),
];

type Drawn = std::result::Result<(), Box<dyn std::error::Error>>;
type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Plot<'a> = ChartContext<'a, SVGBackend<'a>, Cartesian2d<RangedCoordf64, RangedCoordf64>>;

/// One line: of which server, its colour, and what it is drawn from at each share.
pub(crate) struct Line {
    pub(crate) name: (String, String),
    pub(crate) family: usize,
    pub(crate) dashed: bool,
    pub(crate) points: Vec<(f64, Spread)>,
}

/// A quantity over time: its name, and seconds and values of each run.
pub(crate) struct Panel {
    pub(crate) y_label: &'static str,
    pub(crate) lines: Vec<Vec<(f64, f64)>>,
}

/// Draws a chart with the late share along the bottom; the vertical axis begins at 0.
pub(crate) fn shares(title: &str, y_label: &str, lines: &[Line]) -> Result<String> {
    drawn(title, SIZE, |root| draw_shares(title, y_label, lines, root))
}

/// Draws panels one below the other, the same time along each, for runs that bear `names`.
pub(crate) fn timeline(title: &str, names: &[String], panels: &[Panel]) -> Result<String> {
    let height = HEAD_HEIGHT + PANEL_HEIGHT * panels.len() as u32;
    drawn(title, (SIZE.0, height), |root| {
        draw_panels(title, names, panels, root)
    })
}

fn drawn(title: &str, size: (u32, u32), draw: impl FnOnce(&Area<'_>) -> Drawn) -> Result<String> {
    let mut svg = String::new();
    let draw = |svg: &mut String| -> Drawn {
        let root = SVGBackend::with_string(svg, size).into_drawing_area();
        root.fill(&WHITE)?;
        draw(&root)?;
        Ok(root.present()?)
    };
    draw(&mut svg).map_err(|error| Error::new(format!("draw {title}: {error}")))?;
    Ok(svg + "\n")
}

fn draw_shares(title: &str, y_label: &str, lines: &[Line], root: &Area<'_>) -> Drawn {
    let root = root.titled(title, ("sans-serif", 18).into_font())?;
    let (plot, legend) = root.split_horizontally(PLOT_WIDTH);
    let points = lines.iter().flat_map(|line| &line.points);
    let highest = points.map(|(_, y)| y.max).fold(0.0, f64::max);
    let labels = ["late samples, percent of all", y_label];
    let mut context = axes(&plot, [12, 44, 13, 15], labels, -1.5..101.0, highest)?;
    for line in lines {
        let style = stroke(line.family);
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
    for (row, line) in lines.iter().enumerate() {
        let y = 24 + 40 * row as i32;
        let sample: &[(i32, i32)] = if line.dashed {
            &[(4, 14), (22, 32)]
        } else {
            &[(4, 32)]
        };
        let style = stroke(line.family);
        for &(from, to) in sample {
            legend.draw(&PathElement::new(vec![(from, y), (to, y)], style))?;
        }
        let (server, encoding) = line.name.clone();
        legend.draw(&Text::new(server, (40, y - 8), ("sans-serif", 14)))?;
        legend.draw(&Text::new(encoding, (40, y + 8), ("sans-serif", 13)))?;
    }
    Ok(())
}

fn draw_panels(title: &str, names: &[String], panels: &[Panel], root: &Area<'_>) -> Drawn {
    let (head, body) = root.split_vertically(HEAD_HEIGHT);
    head.draw(&Text::new(title.to_owned(), (12, 8), ("sans-serif", 18)))?;
    for (at, name) in names.iter().enumerate() {
        let left = 16 + 200 * at as i32;
        let sample = vec![(left, 46), (left + 28, 46)];
        head.draw(&PathElement::new(sample, stroke(at)))?;
        let name = name.clone();
        head.draw(&Text::new(name, (left + 36, 38), ("sans-serif", 14)))?;
    }
    let points = panels.iter().flat_map(|panel| panel.lines.iter().flatten());
    let end = points.map(|point| point.0).fold(1.0, f64::max);
    for (area, panel) in body.split_evenly((panels.len(), 1)).iter().zip(panels) {
        draw_panel(area, panel, end)?;
    }
    Ok(())
}

fn draw_panel(area: &Area<'_>, panel: &Panel, end_seconds: f64) -> Drawn {
    let values = panel.lines.iter().flatten().map(|point| point.1);
    let highest = values.fold(0.0, f64::max);
    let labels = ["seconds", panel.y_label];
    let mut context = axes(area, [8, 34, 12, 13], labels, 0.0..end_seconds, highest)?;
    for (at, line) in panel.lines.iter().enumerate() {
        context.draw_series(LineSeries::new(line.iter().copied(), stroke(at)))?;
    }
    Ok(())
}

/// Empty axes: their margin, room for the lower labels and sizes of fonts; the vertical one begins
/// at 0.
fn axes<'a>(
    area: &Area<'a>,
    [margin, labels_height, label_font, name_font]: [u32; 4],
    [x_name, y_name]: [&str; 2],
    x: std::ops::Range<f64>,
    highest: f64,
) -> std::result::Result<Plot<'a>, Box<dyn std::error::Error>> {
    let (top, step) = y_scale(highest);
    let mut plot = ChartBuilder::on(area)
        .margin(margin)
        .x_label_area_size(labels_height)
        .y_label_area_size(76)
        .build_cartesian_2d(x, 0.0..top)?;
    plot.configure_mesh()
        .x_desc(x_name)
        .y_desc(y_name)
        .x_labels(11)
        .y_labels((top / step).round() as usize + 2)
        .x_label_formatter(&|x| format!("{x:.0}"))
        .y_label_formatter(&|y| match step < 1.0 {
            true => format!("{y:.2}"),
            false => thousands(*y),
        })
        .label_style(("sans-serif", label_font))
        .axis_desc_style(("sans-serif", name_font))
        .light_line_style(TRANSPARENT)
        .draw()?;
    Ok(plot)
}

fn stroke(family: usize) -> ShapeStyle {
    COLORS[family % COLORS.len()].stroke_width(2)
}

/// A round top above `highest`, and the distance of the marks below it.
fn y_scale(highest: f64) -> (f64, f64) {
    if !highest.is_finite() || highest <= 0.0 {
        return (1.0, 0.2);
    }
    let raw = highest / 7.0;
    let unit = 10f64.powf(raw.log10().floor());
    let mut steps = [1.0, 2.0, 5.0, 10.0].into_iter().map(|step| step * unit);
    let step = steps.find(|step| *step >= raw).unwrap_or(10.0 * unit);
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
        assert_eq!((y_scale(0.0), y_scale(f64::NAN)), ((1.0, 0.2), (1.0, 0.2)));
    }

    #[test]
    fn charts_name_their_axes_and_lines() {
        let value = |median: f64| Spread {
            median,
            min: median * 0.9,
            max: median * 1.1,
        };
        let line = |server: &str, encoding: &str, dashed| Line {
            name: (server.to_owned(), encoding.to_owned()),
            family: usize::from(dashed),
            dashed,
            points: vec![(0.0, value(10.0)), (99.0, value(9.0))],
        };
        let lines = [line("One", "", false), line("Two", "uncompressed", true)];
        let shares = shares("Rate of something", "a second", &lines).unwrap();
        for text in [
            "Rate of",
            "a second",
            "late samples, percent",
            "uncompressed",
        ] {
            assert!(shares.contains(text), "{text} is missing");
        }
        let panels = [Panel {
            y_label: "rate",
            lines: vec![vec![(0.0, 1.0), (5.0, 3.0)], vec![(0.0, 2.0), (7.0, 2.0)]],
        }];
        let names = ["log off".to_owned(), "log on".to_owned()];
        let panels = timeline("A load", &names, &panels).unwrap();
        for text in ["A load", "log on", "seconds", "rate"] {
            assert!(panels.contains(text), "{text} is missing");
        }
        assert!(timeline("Nothing", &[], &[]).is_ok());
    }
}
