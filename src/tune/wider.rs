//! Grids that go on where the best setting lies on their border.

use super::{Grid, Parameters};
use crate::settings::SettingError;

/// The axes of a grid on whose border a setting lies, and the value beyond for each: by their
/// numbers. Nothing lies beyond the end of a parameter's range, or of a single value.
fn beyond(grid: &Grid, best: &Parameters) -> Vec<(usize, f64)> {
    let next = |(at, (name, values)): (usize, &(String, Vec<f64>))| {
        let &(_, value) = best.0.iter().find(|(own, _)| own == name)?;
        let mut others: Vec<f64> = values.iter().copied().filter(|&other| other != value).collect();
        others.sort_by(|a, b| (a - value).abs().total_cmp(&(b - value).abs()));
        let nearest = *others.first().filter(|_| others.len() < values.len())?;
        let is_border = others.iter().all(|&other| (other > value) == (nearest > value));
        let most = if name == "alpha" || name.starts_with('b') && !name.starts_with("boost") {
            1.0
        } else {
            f64::INFINITY
        };
        let next = match 2.0 * value - nearest {
            below if below <= 0.0 => value / 2.0,
            next => next.min(most),
        };
        let next = (next * 1e4).round() / 1e4;
        (is_border && next > 0.0 && next != value).then_some((at, next))
    };
    grid.axes.iter().enumerate().filter_map(next).collect()
}

impl Grid {
    /// The names of the parameters of which a setting has the least or the greatest value, beyond
    /// which there are others.
    pub fn border(&self, best: &Parameters) -> Vec<&str> {
        beyond(self, best).into_iter().map(|(at, _)| &*self.axes[at].0).collect()
    }

    /// The grid with another value beyond each border on which a setting lies.
    ///
    /// # Errors
    /// If the score does not take a value.
    pub fn wider(&self, best: &Parameters) -> Result<Self, SettingError> {
        let mut axes = self.axes.clone();
        for (at, next) in beyond(self, best) {
            axes[at].1.push(next);
            axes[at].1.sort_by(f64::total_cmp);
        }
        Self::of(axes, self.same.clone(), self.settings[self.default].clone())
    }
}

#[cfg(test)]
mod tests {
    use super::super::Tried;
    use super::*;

    #[test]
    fn grids_go_on_beyond_their_border_as_far_as_a_parameter_goes() {
        let tried =
            Tried { k1: Some(vec![0.5, 1.0, 2.0]), b: Some(vec![0.5, 0.9]), ..Tried::default() };
        let grid = Grid::new("bm25", None, &tried).unwrap();
        let at = |k1, b| Parameters(vec![("k1".to_string(), k1), ("b".to_string(), b)]);
        let axes = |k1, b| grid.wider(&at(k1, b)).unwrap().axes.into_iter().map(|axis| axis.1);
        assert_eq!(grid.border(&at(1.0, 0.9)), ["b"]);
        assert_eq!(
            axes(2.0, 0.9).collect::<Vec<_>>(),
            [vec![0.5, 1.0, 2.0, 3.0], vec![0.5, 0.9, 1.0]]
        );
        assert_eq!(
            axes(0.5, 0.5).collect::<Vec<_>>(),
            [vec![0.25, 0.5, 1.0, 2.0], vec![0.1, 0.5, 0.9]]
        );
        // The defaults are no border, nor is a single value, nor the end of a range.
        assert!(grid.border(&at(1.2, 0.75)).is_empty());
        let tried = Tried { k1: Some(vec![1.0]), b: Some(vec![0.0, 0.5, 1.0]), ..Tried::default() };
        let grid = Grid::new("bm25", None, &tried).unwrap();
        assert!(grid.border(&at(1.0, 1.0)).is_empty() && grid.border(&at(1.0, 0.0)).is_empty());
        assert_eq!(grid.wider(&at(1.0, 0.5)).unwrap(), grid);
    }
}
