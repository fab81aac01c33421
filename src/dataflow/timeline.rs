//! Working time by slice of a job, and what was done by when, in a fixed amount of memory however
//! long the job takes.

use serde::Serialize;
use std::time::Duration;

const SLICES: usize = 64;
/// Slices begin with 2^24 nanoseconds, so that the first 64 of them are a second.
const FIRST_SHIFT: u32 = 24;

/// Nanoseconds of work in each slice of the time since the job began. A slice has a power of two of
/// nanoseconds; when the job outlasts all slices, neighbours are added up and each is twice as long
/// from then on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeline {
    shift: u32,
    slices: [u64; SLICES],
}

impl Default for Timeline {
    fn default() -> Self {
        Self { shift: FIRST_SHIFT, slices: [0; SLICES] }
    }
}

impl Timeline {
    /// Adds work that was done from one time to another, both since the beginning of the job. A few
    /// instructions, unless the work extends over several slices.
    #[inline]
    pub(crate) fn add(&mut self, from: Duration, to: Duration) {
        let from = from.as_nanos() as u64;
        let to = to.as_nanos() as u64;
        let first = (from >> self.shift) as usize;
        let last = (to >> self.shift) as usize;
        if first == last && last < SLICES {
            self.slices[last] += to - from;
        } else {
            self.add_over_slices(from, to);
        }
    }

    #[cold]
    fn add_over_slices(&mut self, mut from: u64, to: u64) {
        while (to >> self.shift) as usize >= SLICES {
            self.lengthen();
        }
        while from < to {
            let slice = from >> self.shift;
            let end = to.min((slice + 1) << self.shift);
            self.slices[slice as usize] += end - from;
            from = end;
        }
    }

    fn lengthen(&mut self) {
        for slice in 0..SLICES / 2 {
            self.slices[slice] = self.slices[2 * slice] + self.slices[2 * slice + 1];
        }
        self.slices[SLICES / 2..].fill(0);
        self.shift += 1;
    }

    pub(crate) fn merge(&mut self, mut other: Self) {
        self.align(&other);
        other.align(self);
        for (slice, more) in self.slices.iter_mut().zip(other.slices) {
            *slice += more;
        }
    }

    /// Makes slices at least as long as those of another timeline.
    pub(crate) fn align(&mut self, other: &Self) {
        while self.shift < other.shift {
            self.lengthen();
        }
    }

    pub(crate) fn slice_seconds(&self) -> f64 {
        (1_u64 << self.shift) as f64 / 1e9
    }

    /// Seconds of work in each slice, up to the last one with any.
    pub(crate) fn seconds(&self) -> Vec<f64> {
        let used = self.slices.iter().rposition(|&work| work > 0).map_or(0, |last| last + 1);
        self.slices[..used].iter().map(|&work| work as f64 / 1e9).collect()
    }
}

const ROWS: usize = 128;

/// How much a job had done by when, in order.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(transparent)]
pub struct ProgressLog(Vec<ProgressRow>);

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct ProgressRow {
    /// Seconds since the job began.
    pub s: f64,
    pub done: u64,
}

impl ProgressLog {
    /// The last row stays, and at least every hundredth of the time that has passed has one.
    pub fn add(&mut self, at: Duration, done: u64) {
        let rows = &mut self.0;
        let row = ProgressRow { s: at.as_secs_f64(), done };
        match rows[..] {
            [.., before, last] if last.s - before.s < row.s / ROWS as f64 => _ = rows.pop(),
            _ => {}
        }
        rows.push(row);
        if rows.len() > 2 * ROWS {
            let mut stays = false;
            rows.retain(|_| {
                stays = !stays;
                stays
            });
        }
    }
}

/// The busy times of a job's operators and workers.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Busy {
    /// Seconds of a slice of the job's time.
    pub slice_s: f64,
    /// Of each operator on all workers together.
    pub operators: Vec<BusyRow<&'static str>>,
    /// Of each worker, all its operators together.
    pub workers: Vec<BusyRow<usize>>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BusyRow<Name> {
    pub name: Name,
    /// Seconds of work in each slice, from the beginning of the job to the last one with any.
    pub seconds: Vec<f64>,
}

impl Busy {
    /// Adds up timelines of operators on workers. Operators stand in the order in which they began
    /// to work.
    pub fn of(timelines: impl Iterator<Item = (&'static str, usize, Timeline)>) -> Self {
        let mut operators: Vec<(&'static str, Timeline)> = Vec::new();
        let mut workers: Vec<(usize, Timeline)> = Vec::new();
        let mut all = Timeline::default();
        for (operator, worker, timeline) in timelines {
            add(&mut operators, operator, timeline);
            add(&mut workers, worker, timeline);
            all.merge(timeline);
        }
        workers.sort_by_key(|worker| worker.0);
        let mut operators = rows(operators, &all);
        operators.sort_by_key(|row| {
            (row.seconds.iter().position(|&seconds| seconds > 0.0).unwrap_or(SLICES), row.name)
        });
        Self { slice_s: all.slice_seconds(), operators, workers: rows(workers, &all) }
    }
}

fn add<Name: PartialEq>(to: &mut Vec<(Name, Timeline)>, name: Name, timeline: Timeline) {
    match to.iter_mut().find(|row| row.0 == name) {
        Some(row) => row.1.merge(timeline),
        None => to.push((name, timeline)),
    }
}

fn rows<Name>(timelines: Vec<(Name, Timeline)>, all: &Timeline) -> Vec<BusyRow<Name>> {
    let row = |(name, mut timeline): (Name, Timeline)| {
        timeline.align(all);
        BusyRow { name, seconds: timeline.seconds() }
    };
    timelines.into_iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn work_lies_in_its_slices_and_none_is_lost_when_they_grow() {
        let mut timeline = Timeline::default();
        timeline.add(ms(1), ms(3));
        timeline.add(ms(10), ms(20));
        let slice = timeline.slice_seconds();
        let near = |a: f64, b: f64| (a - b).abs() < 1e-9;
        let seconds = timeline.seconds();
        assert!(near(seconds[0], 0.002 + slice - 0.010) && near(seconds[1], 0.020 - slice));
        // An hour later the slices are longer, and the sum is the same.
        timeline.add(ms(3_600_000), ms(3_600_500));
        let seconds = timeline.seconds();
        assert!(timeline.slice_seconds() * 64.0 > 3600.5 && seconds.len() <= 64);
        assert!(
            (seconds[0] - 0.012).abs() < 1e-9 && (seconds.iter().sum::<f64>() - 0.512).abs() < 1e-9
        );
    }

    #[test]
    fn work_over_several_slices_fills_those_between() {
        let mut timeline = Timeline::default();
        timeline.add(ms(0), ms(100));
        let seconds = timeline.seconds();
        assert_eq!(seconds.len(), 6);
        assert!(seconds[..5].iter().all(|&slice| slice == timeline.slice_seconds()));
    }

    #[test]
    fn progress_keeps_its_ends_and_an_even_sample_between() {
        let mut log = ProgressLog::default();
        for at in 0..100_000 {
            log.add(ms(at), 10 * at);
        }
        let rows = log.0;
        assert!(rows.len() <= 2 * ROWS, "{}", rows.len());
        assert_eq!(rows[0], ProgressRow { s: 0.0, done: 0 });
        assert_eq!(rows.last(), Some(&ProgressRow { s: 99.999, done: 999_990 }));
        for pair in rows.windows(2) {
            let gap = pair[1].s - pair[0].s;
            assert!(gap > 0.0 && gap < 2.5, "{pair:?}");
        }
    }

    #[test]
    fn busy_adds_up_by_operator_and_by_worker() {
        let of = |from, to| {
            let mut timeline = Timeline::default();
            timeline.add(ms(from), ms(to));
            timeline
        };
        let long = of(4000, 4010);
        let rows = [("Parse", 1, long), ("Write", 0, of(3000, 3002)), ("Parse", 0, of(40, 44))];
        let busy = Busy::of(rows.into_iter());
        assert_eq!(busy.slice_s, long.slice_seconds());
        let names: Vec<&str> = busy.operators.iter().map(|row| row.name).collect();
        assert_eq!(names, ["Parse", "Write"]);
        let sum = |seconds: &[f64]| (seconds.iter().sum::<f64>() * 1e3).round();
        assert_eq!(busy.workers.iter().map(|row| row.name).collect::<Vec<_>>(), [0, 1]);
        assert_eq!(
            busy.workers.iter().map(|row| sum(&row.seconds)).collect::<Vec<_>>(),
            [6.0, 10.0]
        );
        assert_eq!(sum(&busy.operators[0].seconds), 14.0);
    }
}
