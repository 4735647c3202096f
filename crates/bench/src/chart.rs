//! Line charts as SVG.

use crate::recorder::Latencies;
use fabius_value::{Error, Result, SqlState};
use plotters::prelude::*;
use serde_json::{Value as Json, json};

/// A line.
#[derive(Clone, Debug)]
pub struct Series {
    /// The series's name in the legend.
    pub name: String,
    /// Where it goes.
    pub points: Vec<(f64, f64)>,
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
const SIZE: (u32, u32) = (760, 400);

impl Chart {
    /// The data, as in `DIR/ID.json`.
    pub fn json(&self) -> Json {
        let lines: Vec<Json> = self
            .series
            .iter()
            .map(|series| json!({ "name": series.name, "points": series.points }))
            .collect();
        json!({ "title": self.title, "x": self.x.label, "y": self.y.label, "series": lines })
    }

    fn range(&self, of: impl Fn(&(f64, f64)) -> f64, axis: &Axis) -> (f64, f64) {
        let values =
            self.series.iter().flat_map(|series| &series.points).map(of).map(|value| axis.place(value));
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

fn draw<'s>(
    chart: &Chart,
    area: &Area<'s>,
) -> std::result::Result<(), DrawingAreaErrorKind<<SVGBackend<'s> as DrawingBackend>::ErrorType>> {
    let (x_range, y_range) = (chart.range(|point| point.0, &chart.x), chart.range(|point| point.1, &chart.y));
    let mut context = ChartBuilder::on(area)
        .caption(&chart.title, ("sans-serif", 17))
        .margin(12)
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
    for (at, series) in chart.series.iter().enumerate() {
        let color = Palette99::pick(at).to_rgba();
        let points: Vec<(f64, f64)> =
            series.points.iter().map(|&(x, y)| (chart.x.place(x), chart.y.place(y))).collect();
        if points.len() <= 32 {
            context.draw_series(points.iter().map(|&point| Circle::new(point, 3, color.filled())))?;
        }
        context
            .draw_series(LineSeries::new(points, color.stroke_width(2)))?
            .label(&series.name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], color.stroke_width(2)));
    }
    context.configure_series_labels().background_style(WHITE.mix(0.85)).border_style(BLACK.mix(0.3)).draw()
}

/// A distribution of latencies as a line: share of calls against microseconds.
pub fn cumulative(name: impl Into<String>, latencies: &Latencies) -> Series {
    let total = latencies.len().max(1) as f64;
    let mut sum = 0;
    let points = latencies.iter_recorded().map(|step| {
        sum += step.count_at_value();
        (step.value_iterated_to() as f64 / 1e3, sum as f64 / total)
    });
    Series { name: name.into(), points: points.collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a chart is drawn without fonts of the system, with its title and every line's name.
    #[test]
    fn charts_become_svg() {
        let series =
            |name: &str| Series { name: name.into(), points: vec![(1.0, 10.0), (10_000.0, 250_000.0)] };
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

    /// Goal: a distribution ends at one, in order.
    #[test]
    fn a_distribution_ends_at_one() {
        let mut latencies = crate::recorder::latencies();
        for ns in [1000, 2000, 2000, 4000] {
            latencies.record(ns).unwrap();
        }
        let points = cumulative("", &latencies).points;
        let shares: Vec<f64> = points.iter().map(|point| point.1).collect();
        assert_eq!(shares, [0.25, 0.75, 1.0]);
    }
}
