//! Metrics in the text formats of Prometheus and of `OpenMetrics`.

use std::fmt::Write;

use grid_batch_support::{Histogram, HistogramValues};

/// A text format of metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricsFormat {
    /// The text format of Prometheus, version 0.0.4.
    Prometheus,
    /// The format of `OpenMetrics`, version 1.0.0.
    OpenMetrics,
}

/// Metrics that are being written. Each metric is written once, with all its samples.
#[derive(Debug)]
pub struct MetricsText {
    format: MetricsFormat,
    text: String,
}

/// The labels of a sample.
type Labels<'a> = &'a [(&'a str, &'a str)];

impl MetricsText {
    /// A text without metrics.
    pub fn new(format: MetricsFormat) -> Self {
        Self { format, text: String::new() }
    }

    /// The text with its end.
    pub fn finish(mut self) -> String {
        if self.format == MetricsFormat::OpenMetrics {
            self.text.push_str("# EOF\n");
        }
        self.text
    }

    /// Writes a value that rises and falls.
    pub fn gauge(&mut self, name: &str, help: &str, value: f64) {
        self.gauges(name, help).sample(&[], value);
    }

    /// Begins a gauge with labels.
    pub fn gauges<'a>(&'a mut self, name: &'a str, help: &str) -> MetricSamples<'a> {
        self.family(name, "gauge", help);
        MetricSamples { text: self, name }
    }

    /// Writes a value that only rises, whose name ends with `_total`.
    pub fn counter(&mut self, name: &str, help: &str, value: f64) {
        self.counters(name, help).sample(&[], value);
    }

    /// Begins a counter with labels, whose name ends with `_total`.
    pub fn counters<'a>(&'a mut self, name: &'a str, help: &str) -> MetricSamples<'a> {
        // For OpenMetrics the suffix belongs to the sample and not to the metric.
        let family = match self.format {
            MetricsFormat::Prometheus => name,
            MetricsFormat::OpenMetrics => name.strip_suffix("_total").unwrap_or(name),
        };
        self.family(family, "counter", help);
        MetricSamples { text: self, name }
    }

    /// Begins a histogram of durations in seconds.
    pub fn histograms<'a>(&'a mut self, name: &'a str, help: &str) -> MetricSamples<'a> {
        self.family(name, "histogram", help);
        MetricSamples { text: self, name }
    }

    fn family(&mut self, name: &str, kind: &str, help: &str) {
        let help = help.replace('\\', "\\\\").replace('\n', "\\n");
        let _ = writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn sample(&mut self, name: &str, suffix: &str, labels: Labels<'_>, le: &str, value: f64) {
        self.text.push_str(name);
        self.text.push_str(suffix);
        let le = (!le.is_empty()).then_some(("le", le));
        let mut separator = '{';
        for (label, value) in labels.iter().copied().chain(le) {
            let _ = write!(self.text, "{separator}{label}=\"{}\"", escape(value));
            separator = ',';
        }
        if separator == ',' {
            self.text.push('}');
        }
        let _ = writeln!(self.text, " {value}");
    }
}

/// Writes the samples of one metric.
#[derive(Debug)]
pub struct MetricSamples<'a> {
    text: &'a mut MetricsText,
    name: &'a str,
}

impl MetricSamples<'_> {
    /// Writes a sample with these labels.
    pub fn sample(&mut self, labels: &[(&str, &str)], value: f64) {
        self.text.sample(self.name, "", labels, "", value);
    }

    /// Writes the buckets, the sum and the count of a histogram with these labels.
    pub fn histogram(&mut self, labels: &[(&str, &str)], values: &HistogramValues) {
        for (bound, count) in Histogram::BOUNDS.iter().zip(values.at_most) {
            self.text.sample(self.name, "_bucket", labels, &format!("{bound:?}"), number(count));
        }
        self.text.sample(self.name, "_bucket", labels, "+Inf", number(values.count));
        self.text.sample(self.name, "_sum", labels, "", values.sum);
        self.text.sample(self.name, "_count", labels, "", number(values.count));
    }
}

/// A count as the number of a sample. Counts above 2^53 are rounded.
#[expect(clippy::cast_precision_loss, reason = "samples are floating-point numbers")]
pub(super) fn number(count: u64) -> f64 {
    count as f64
}

fn escape(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn example(format: MetricsFormat) -> String {
        let mut text = MetricsText::new(format);
        text.gauge("a_seconds", "An age.", 1.5);
        let mut sent = text.counters("sent_total", "How many\nwere sent.");
        sent.sample(&[("service", "a\"b\\c"), ("result", "ok")], 3.0);
        text.finish()
    }

    #[test]
    fn names_help_and_labels_are_written_for_prometheus() {
        let expected = "# HELP a_seconds An age.\n# TYPE a_seconds gauge\na_seconds 1.5\n\
                        # HELP sent_total How many\\nwere sent.\n# TYPE sent_total counter\n\
                        sent_total{service=\"a\\\"b\\\\c\",result=\"ok\"} 3\n";
        assert_eq!(example(MetricsFormat::Prometheus), expected);
    }

    #[test]
    fn open_metrics_counters_have_no_suffix() {
        let text = example(MetricsFormat::OpenMetrics);
        assert!(text.contains("# TYPE sent counter\nsent_total{"), "{text}");
        assert!(text.ends_with("\n# EOF\n"), "{text}");
    }

    #[test]
    fn histogram_has_buckets_a_sum_and_a_count() {
        let histogram = Histogram::default();
        histogram.observe(Duration::from_millis(500));
        let mut text = MetricsText::new(MetricsFormat::Prometheus);
        text.histograms("h_seconds", "Durations.").histogram(&[("stage", "x")], &histogram.read());
        let text = text.finish();
        for line in [
            "h_seconds_bucket{stage=\"x\",le=\"0.25\"} 0\n",
            "h_seconds_bucket{stage=\"x\",le=\"1.0\"} 1\n",
            "h_seconds_bucket{stage=\"x\",le=\"+Inf\"} 1\n",
            "h_seconds_sum{stage=\"x\"} 0.5\n",
            "h_seconds_count{stage=\"x\"} 1\n",
        ] {
            assert!(text.contains(line), "{text}");
        }
    }
}
