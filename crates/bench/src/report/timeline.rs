//! Charts over the seconds of a run: panels one below the other, the same time along each.

use plotters::prelude::*;

use super::chart::{COLORS, y_scale};
use super::statistics::axis_label;
use crate::error::{Error, Result};

/// Size of a chart: width, and height of each panel, pixels.
const WIDTH: u32 = 900;
const PANEL_HEIGHT: u32 = 220;
/// Height of the title and of the legend.
const HEAD_HEIGHT: u32 = 60;

/// A quantity over time.
#[derive(Clone, Debug)]
pub(super) struct Panel {
    /// Quantity and unit; the axis begins at 0.
    pub(super) y_label: &'static str,
    /// For each run: seconds and values, in order of time.
    pub(super) lines: Vec<Vec<(f64, f64)>>,
}

/// Draws panels for runs that bear `names`.
///
/// # Errors
/// When the drawing library fails.
pub(super) fn draw(title: &str, names: &[String], panels: &[Panel]) -> Result<String> {
    let mut svg = String::new();
    draw_into(title, names, panels, &mut svg)
        .map_err(|error| Error::new(format!("draw {title}: {error}")))?;
    svg.push('\n');
    Ok(svg)
}

type Drawn = std::result::Result<(), Box<dyn std::error::Error>>;

fn draw_into(title: &str, names: &[String], panels: &[Panel], svg: &mut String) -> Drawn {
    let height = HEAD_HEIGHT + PANEL_HEIGHT * panels.len() as u32;
    let root = SVGBackend::with_string(svg, (WIDTH, height)).into_drawing_area();
    root.fill(&WHITE)?;
    let (head, body) = root.split_vertically(HEAD_HEIGHT);
    head.draw(&Text::new(title.to_owned(), (12, 8), ("sans-serif", 18)))?;
    for (at, name) in names.iter().enumerate() {
        let left = 16 + 200 * at as i32;
        let line = vec![(left, 46), (left + 28, 46)];
        head.draw(&PathElement::new(
            line,
            COLORS[at % COLORS.len()].stroke_width(2),
        ))?;
        head.draw(&Text::new(
            name.clone(),
            (left + 36, 38),
            ("sans-serif", 14),
        ))?;
    }
    let points = || panels.iter().flat_map(|panel| panel.lines.iter().flatten());
    let end = points().map(|point| point.0).fold(1.0, f64::max);
    for (area, panel) in body.split_evenly((panels.len(), 1)).iter().zip(panels) {
        draw_panel(area, panel, end)?;
    }
    root.present()?;
    Ok(())
}

fn draw_panel(
    area: &DrawingArea<SVGBackend<'_>, plotters::coord::Shift>,
    panel: &Panel,
    end_seconds: f64,
) -> Drawn {
    let values = panel.lines.iter().flatten().map(|point| point.1);
    let (top, step) = y_scale(values.fold(0.0, f64::max));
    let mut context = ChartBuilder::on(area)
        .margin(8)
        .x_label_area_size(34)
        .y_label_area_size(76)
        .build_cartesian_2d(0.0..end_seconds, 0.0..top)?;
    context
        .configure_mesh()
        .x_desc("seconds")
        .y_desc(panel.y_label)
        .y_labels((top / step).round() as usize + 2)
        .x_label_formatter(&|x| format!("{x:.0}"))
        .y_label_formatter(&|y| axis_label(*y, step))
        .label_style(("sans-serif", 12))
        .axis_desc_style(("sans-serif", 13))
        .light_line_style(TRANSPARENT)
        .draw()?;
    for (at, line) in panel.lines.iter().enumerate() {
        let style = COLORS[at % COLORS.len()].stroke_width(2);
        context.draw_series(LineSeries::new(line.iter().copied(), style))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chart_names_its_panels_and_runs() {
        let panel = |y_label| Panel {
            y_label,
            lines: vec![vec![(0.0, 1.0), (5.0, 3.0)], vec![(0.0, 2.0), (7.0, 2.0)]],
        };
        let names = ["log off".to_owned(), "log on".to_owned()];
        let svg = draw("A load", &names, &[panel("rate"), panel("MiB")]).unwrap();
        for text in ["A load", "log off", "log on", "rate", "MiB", "seconds"] {
            assert!(svg.contains(text), "{text} is missing");
        }
        assert!(draw("Nothing", &[], &[panel("rate")]).is_ok());
    }
}
