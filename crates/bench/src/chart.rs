//! Line charts as SVG.

use crate::recorder::Latencies;
use crate::repeated::Repeated;
use fabius_value::{Error, Result, SqlState};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use serde_json::{Value as Json, json};

/// A line.
#[derive(Clone, Debug)]
pub struct Series {
    /// What stands at its end.
    pub name: String,
    /// Where it goes; what spreads has an error bar.
    pub points: Vec<(f64, Repeated)>,
}

impl Series {
    /// A line through these points.
    pub fn new<Y: Into<Repeated>>(
        name: impl Into<String>,
        points: impl IntoIterator<Item = (f64, Y)>,
    ) -> Series {
        let points = points.into_iter().map(|(x, y)| (x, y.into())).collect();
        Series { name: name.into(), points }
    }

    fn json(&self) -> Json {
        let point = |(x, y): &(f64, Repeated)| match y.has_spread() {
            true => json!([x, y.value, y.low, y.high]),
            false => json!([x, y.value]),
        };
        json!({ "name": self.name, "points": self.points.iter().map(point).collect::<Vec<_>>() })
    }
}

/// An axis.
#[derive(Clone, Debug)]
pub struct Axis {
    /// What it shows, with its unit.
    pub label: String,
    /// Whether it is logarithmic.
    pub is_log: bool,
}

impl Axis {
    /// A linear axis.
    pub fn linear(label: &str) -> Axis {
        Axis { label: label.to_string(), is_log: false }
    }

    /// A logarithmic axis.
    pub fn log(label: &str) -> Axis {
        Axis { label: label.to_string(), is_log: true }
    }

    fn place(&self, value: f64) -> f64 {
        if self.is_log { value.max(1e-9).log10() } else { value }
    }

    fn mark(&self, place: f64) -> String {
        let value = if self.is_log { 10f64.powf(place) } else { place };
        match value.abs() {
            v if v >= 1e6 => {
                format!("{:.3}", value / 1e6).trim_end_matches('0').trim_end_matches('.').to_string() + "M"
            }
            v if v >= 1e4 => format!("{:.0}k", value / 1e3),
            v if v >= 10.0 || v == 0.0 => format!("{value:.0}"),
            v if v >= 1.0 => format!("{value:.1}"),
            _ => format!("{value:.2}"),
        }
    }
}

/// Lines over two axes.
#[derive(Clone, Debug)]
pub struct Chart {
    /// Above it.
    pub title: String,
    /// Horizontal.
    pub x: Axis,
    /// Vertical.
    pub y: Axis,
    /// The lines.
    pub series: Vec<Series>,
}

/// The size of one chart in pixels.
const SIZE: (u32, u32) = (860, 400);
/// The height of a line's name, the width of its letters, and the way to it from the line's end.
const NAME: (i32, i32, i32) = (15, 7, 26);
/// Points of a line that are marked one by one, at most.
const MARKED: usize = 32;

impl Chart {
    /// The data, as in `DIR/ID.json`.
    pub fn json(&self) -> Json {
        let lines: Vec<Json> = self.series.iter().map(Series::json).collect();
        json!({ "title": self.title, "x": self.x.label, "y": self.y.label, "series": lines })
    }

    fn range(&self, of: impl Fn(&(f64, Repeated)) -> [f64; 2], axis: &Axis) -> (f64, f64) {
        let values =
            self.series.iter().flat_map(|series| &series.points).flat_map(of).map(|value| axis.place(value));
        let (low, high) = values.fold((f64::MAX, f64::MIN), |(low, high), v| (low.min(v), high.max(v)));
        match (low > high, axis.is_log) {
            (true, _) => (0.0, 1.0),
            (false, true) => (low.floor(), high.ceil().max(low.floor() + 1.0)),
            (false, false) => (low.min(0.0), if high > 0.0 { high * 1.05 } else { 1.0 }),
        }
    }
}

/// The charts below each other as one SVG.
///
/// # Errors
/// If drawing fails.
pub fn svg(charts: &[Chart]) -> Result<String> {
    let mut text = String::new();
    {
        let root = SVGBackend::with_string(&mut text, (SIZE.0, SIZE.1 * charts.len().max(1) as u32))
            .into_drawing_area();
        let drawn = root
            .fill(&WHITE)
            .map_err(|error| error.to_string())
            .and_then(|()| {
                let areas = root.split_evenly((charts.len().max(1), 1));
                charts
                    .iter()
                    .zip(&areas)
                    .try_for_each(|(chart, area)| draw(chart, area).map_err(|error| error.to_string()))
            })
            .and_then(|()| root.present().map_err(|error| error.to_string()));
        drawn.map_err(|error| {
            Error::new(SqlState::IO_ERROR, "the figure cannot be drawn").with_detail(error)
        })?;
    }
    Ok(text)
}

type Area<'s> = DrawingArea<SVGBackend<'s>, plotters::coord::Shift>;

fn draw<'s>(chart: &Chart, area: &Area<'s>) -> Drawn<'s> {
    let x_range = chart.range(|(x, _)| [*x, *x], &chart.x);
    let y_range = chart.range(|(_, y)| [y.low, y.high], &chart.y);
    let longest = chart.series.iter().map(|series| series.name.chars().count()).max().unwrap_or(0);
    let mut context = ChartBuilder::on(area)
        .caption(&chart.title, ("sans-serif", 17))
        .margin(12)
        .margin_right(12 + NAME.2 + NAME.1 * longest as i32)
        .x_label_area_size(42)
        .y_label_area_size(64)
        .build_cartesian_2d(x_range.0..x_range.1, y_range.0..y_range.1)?;
    context
        .configure_mesh()
        .x_desc(&chart.x.label)
        .y_desc(&chart.y.label)
        .x_label_formatter(&|place| chart.x.mark(*place))
        .y_label_formatter(&|place| chart.y.mark(*place))
        .light_line_style(WHITE.mix(0.0))
        .draw()?;
    let mut ends = Vec::new();
    for (at, series) in chart.series.iter().enumerate() {
        let color = Palette99::pick(at).to_rgba();
        let place = |x: f64, y: f64| (chart.x.place(x), chart.y.place(y));
        let points: Vec<(f64, f64)> = series.points.iter().map(|(x, y)| place(*x, y.value)).collect();
        if points.len() <= MARKED {
            context.draw_series(points.iter().map(|&point| Circle::new(point, 3, color.filled())))?;
            let bars = series.points.iter().filter(|(_, y)| y.has_spread()).map(|(x, y)| {
                let (x, low) = place(*x, y.low);
                let (middle, high) = (chart.y.place(y.value), chart.y.place(y.high));
                ErrorBar::new_vertical(x, low, middle, high, color.stroke_width(1), 8)
            });
            context.draw_series(bars)?;
        }
        ends.extend(points.last().map(|end| (context.backend_coord(end), series.name.as_str(), color)));
        context.draw_series(LineSeries::new(points, color.stroke_width(2)))?;
    }
    let right = context.backend_coord(&(x_range.1, y_range.0)).0;
    name_lines(area, ends, right)
}

type Drawn<'s> = std::result::Result<(), DrawingAreaErrorKind<<SVGBackend<'s> as DrawingBackend>::ErrorType>>;

/// Writes the name of each line, given where it ends, to the right of `right`, in its colour and none upon another.
fn name_lines<'s>(area: &Area<'s>, mut ends: Vec<((i32, i32), &str, RGBAColor)>, right: i32) -> Drawn<'s> {
    ends.sort_by_key(|((_, y), ..)| *y);
    let (across, down) = area.get_pixel_range();
    let mut heights = apart(&ends.iter().map(|((_, y), ..)| *y).collect::<Vec<_>>(), down.end - NAME.0 / 2);
    heights.iter_mut().for_each(|y| *y -= down.start);
    for (((x, y), name, color), height) in ends.into_iter().zip(heights) {
        let (from, to) = ((x - across.start, y - down.start), (right - across.start + NAME.2, height));
        let lead = [(from.0 + 5, from.1), (to.0 - 4, to.1)];
        area.draw(&PathElement::new(lead, color.mix(0.5).stroke_width(1)))?;
        let style = TextStyle::from(("sans-serif", 13).into_font()).color(&color);
        area.draw(&Text::new(name.to_string(), to, style.pos(Pos::new(HPos::Left, VPos::Center))))?;
    }
    Ok(())
}

/// Heights as near as may be to those wanted, which ascend, a name's height apart and none below `bottom`.
fn apart(wanted: &[i32], bottom: i32) -> Vec<i32> {
    let mut heights: Vec<i32> = Vec::new();
    for &height in wanted {
        heights.push(heights.last().map_or(height, |above| height.max(above + NAME.0)));
    }
    let mut lowest = bottom;
    for height in heights.iter_mut().rev() {
        *height = (*height).min(lowest);
        lowest = *height - NAME.0;
    }
    heights
}

/// A distribution of latencies as a line: share of calls against microseconds.
pub fn cumulative(name: impl Into<String>, latencies: &Latencies) -> Series {
    let total = latencies.len().max(1) as f64;
    let mut sum = 0;
    let points = latencies.iter_recorded().map(|step| {
        sum += step.count_at_value();
        (step.value_iterated_to() as f64 / 1e3, sum as f64 / total)
    });
    Series::new(name, points)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a chart is drawn without fonts of the system, with its title and every line's name.
    #[test]
    fn charts_become_svg() {
        let series = |name: &str| {
            Series::new(name, [(1.0, Repeated::from(10.0)), (10_000.0, Repeated::of(vec![2e5, 3e5]))])
        };
        let chart = Chart {
            title: "Throughput".into(),
            x: Axis::log("bound"),
            y: Axis::linear("calls/s"),
            series: vec![series("lazy"), series("eager")],
        };
        let text = svg(&[chart.clone(), chart]).unwrap();
        assert!(text.starts_with("<svg") && text.trim_end().ends_with("</svg>"));
        for word in ["Throughput", "bound", "lazy", "eager", "10k"] {
            assert!(text.contains(word), "{word}");
        }
    }

    /// Goal: names of lines that end in one place stand below each other, within the chart.
    #[test]
    fn names_stand_apart() {
        assert_eq!(apart(&[10, 12, 100], 300), [10, 25, 100]);
        assert_eq!(apart(&[290, 292, 299], 300), [270, 285, 300]);
    }

    /// Goal: a distribution ends at one, in order.
    #[test]
    fn a_distribution_ends_at_one() {
        let mut latencies = crate::recorder::latencies();
        for ns in [1000, 2000, 2000, 4000] {
            latencies.record(ns).unwrap();
        }
        let points = cumulative("", &latencies).points;
        let shares: Vec<f64> = points.iter().map(|point| point.1.value).collect();
        assert_eq!(shares, [0.25, 0.75, 1.0]);
    }
}
