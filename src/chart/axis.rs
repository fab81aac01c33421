//! Where does a value stand on an axis? By its share of the axis' length, which begins and ends at a round number.

/// Marks that an axis has at most, about.
const MARKS: f64 = 6.0;

/// The values that an axis has room for.
pub(super) struct Axis {
    least: f64,
    most: f64,
    /// Whether equal ratios of values are equally far apart.
    log: bool,
    marks: Vec<f64>,
}

impl Axis {
    /// An axis for some values; none if there are none. One that is not logarithmic has 0 on it.
    pub(super) fn of(values: impl Iterator<Item = f64>, log: bool) -> Option<Self> {
        let values = values.filter(|value| value.is_finite() && (!log || *value > 0.0));
        let (least, most) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), v| {
            (f64::min(least, v), f64::max(most, v))
        });
        (least <= most)
            .then(|| if log { Self::by_ratio(least, most) } else { Self::even(least, most) })
    }

    fn even(least: f64, most: f64) -> Self {
        let (least, most) = (least.min(0.0), most.max(0.0));
        let width = if most > least { most - least } else { 1.0 };
        let power = 10f64.powf((width / MARKS).log10().floor());
        let wide_enough = |step: &f64| width / step <= MARKS;
        let steps = [1.0, 2.0, 5.0, 10.0].map(|digit| digit * power);
        let step = steps.into_iter().find(wide_enough).unwrap_or(steps[3]);
        let (first, last) = ((least / step).floor(), ((least + width) / step).ceil());
        let marks = (0..=(last - first) as usize).map(|n| (first + n as f64) * step).collect();
        Self { least: first * step, most: last * step, log: false, marks }
    }

    fn by_ratio(least: f64, most: f64) -> Self {
        let (first, last) = (least.log10().floor() as i32, most.log10().ceil() as i32);
        // Within two powers of ten there are marks at 2 and 5, too.
        let digits = if last - first <= 2 { &[1.0, 2.0, 5.0][..] } else { &[1.0] };
        let all =
            (first..=last + 1).flat_map(|power| digits.iter().map(move |d| d * 10f64.powi(power)));
        let all: Vec<f64> = all.collect();
        let begin = all.iter().rposition(|mark| *mark <= least * (1.0 + 1e-9)).unwrap_or(0);
        let end = all.iter().position(|mark| *mark >= most * (1.0 - 1e-9)).unwrap_or(all.len() - 1);
        let marks = all[begin..=end.max(begin + 1)].to_vec();
        Self { least: marks[0], most: marks[marks.len() - 1], log: true, marks }
    }

    /// Whether a value has a place on the axis.
    pub(super) fn has(&self, value: f64) -> bool {
        value.is_finite() && (!self.log || value > 0.0)
    }

    /// How far along the axis a value is.
    pub(super) fn share(&self, value: f64) -> f64 {
        match self.log {
            true => (value / self.least).ln() / (self.most / self.least).ln(),
            false => (value - self.least) / (self.most - self.least),
        }
    }

    /// Values at which the axis is marked.
    pub(super) fn marks(&self) -> &[f64] {
        &self.marks
    }
}

/// A round number, in few characters.
pub(super) fn mark(value: f64) -> String {
    let size = value.abs();
    let (by, unit) = match size {
        _ if size >= 1e9 => (1e9, " G"),
        _ if size >= 1e6 => (1e6, " M"),
        _ if size >= 1e4 => (1e3, " k"),
        _ => (1.0, ""),
    };
    // What is left of adding up is no digit of it.
    let rounded: f64 = format!("{:.3e}", value / by).parse().unwrap_or(value / by);
    format!("{rounded}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_begin_and_end_at_marks() {
        let axis = Axis::of([3.0, 17.0].into_iter(), false).unwrap();
        assert_eq!(axis.marks(), [0.0, 5.0, 10.0, 15.0, 20.0]);
        assert_eq!((axis.share(0.0), axis.share(5.0), axis.share(20.0)), (0.0, 0.25, 1.0));
        let axis = Axis::of([-0.5, 0.5].into_iter(), false).unwrap();
        assert_eq!((axis.share(0.0), axis.marks().len()), (0.5, 7));
        let axis = Axis::of([64.0, 0.0, 1e6].into_iter(), true).unwrap();
        assert_eq!(axis.marks(), [10.0, 100.0, 1e3, 1e4, 1e5, 1e6]);
        assert!((axis.share(1e3) - 0.4).abs() < 1e-9 && !axis.has(0.0));
        let axis = Axis::of([7.0].into_iter(), true).unwrap();
        assert_eq!(axis.marks(), [5.0, 10.0]);
        assert!(Axis::of([0.0].into_iter(), true).is_none());
        assert_eq!(Axis::of([0.0].into_iter(), false).unwrap().share(0.0), 0.0);
    }

    #[test]
    fn marks_are_short() {
        let marks = [0.0, 0.1 + 0.2, 12_000.0, 2_500_000.0, -40.0, 3e10].map(mark);
        assert_eq!(marks, ["0", "0.3", "12 k", "2.5 M", "-40", "30 G"]);
    }
}
