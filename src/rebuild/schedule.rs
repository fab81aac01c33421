//! The schedule of rebuilds: a cron expression in a time zone.
//!
//! An expression has five fields (minute, hour, day, month, weekday). Where clocks are put forward
//! a job at a fixed time in the missing hour runs at the first instant behind it; where they are
//! put back it runs once, the first time; jobs of every minute or hour run as time passes. That is
//! what Vixie's cron and the crate `croner` do.
//!
//! A clock that is set back, by hand or by a time server, repeats no rebuild: nothing is due again
//! until a time behind what was due last.

use super::values::text;
use croner::Cron;
use croner::parser::{CronParser, Seconds, Year};
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};
use serde::{Deserialize, Deserializer};

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CronSchedule {
    #[serde(deserialize_with = "cron")]
    cron: Cron,
    #[serde(rename = "timezone", default = "utc", deserialize_with = "zone")]
    zone: TimeZone,
}

/// Reads a cron expression, which has to match some day: 30 February is refused.
fn cron<'de, D: Deserializer<'de>>(from: D) -> Result<Cron, D::Error> {
    text(from, |cron| {
        let parser =
            CronParser::builder().seconds(Seconds::Disallowed).year(Year::Disallowed).build();
        let schedule = parser.parse(cron).map_err(|error| {
            let error = error.to_string();
            format!("`{cron}` is not a cron expression: {}", error.trim_end_matches('.'))
        })?;
        let schedule = CronSchedule { cron: schedule, zone: utc() };
        let comes = schedule.after(Timestamp::UNIX_EPOCH).is_some();
        comes.then_some(schedule.cron).ok_or_else(|| format!("`{cron}` never comes"))
    })
}

fn utc() -> TimeZone {
    TimeZone::UTC
}

/// Finds a time zone by its IANA name, such as `Europe/Zurich`, or `local`, the machine's own.
fn zone<'de, D: Deserializer<'de>>(from: D) -> Result<TimeZone, D::Error> {
    text(from, |name| match name {
        "local" => TimeZone::try_system()
            .map_err(|error| format!("the machine's time zone is not known: {error}")),
        name => TimeZone::get(name).map_err(|_| {
            format!(
                "`{name}` is not a time zone; write UTC, local, or a name such as Europe/Zurich"
            )
        }),
    })
}

impl CronSchedule {
    pub(crate) fn after(&self, instant: Timestamp) -> Option<Timestamp> {
        let from = instant.to_zoned(self.zone.clone());
        let next: Zoned = self.cron.find_next_occurrence(&from, false).ok()?;
        Some(next.timestamp())
    }

    pub(crate) fn show(&self, instant: Timestamp) -> String {
        instant.to_zoned(self.zone.clone()).strftime("%Y-%m-%d %H:%M:%S %Z").to_string()
    }
}

/// Tells what is due next, whatever the clock does.
#[derive(Clone, Debug)]
pub(crate) struct Due {
    schedule: CronSchedule,
    next: Option<Timestamp>,
    last: Option<Timestamp>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NextRebuild {
    /// For this time of the schedule.
    Now(Timestamp),
    Wait(Timestamp),
    Never,
}

impl Due {
    pub(crate) fn new(schedule: CronSchedule, now: Timestamp) -> Self {
        let next = schedule.after(now);
        Self { schedule, next, last: None }
    }

    /// Looks at the clock. Times that were missed in a rebuild, or while the machine slept, are one
    /// turn. What is due after a clock was set back is found from it, but behind the last time due.
    pub(crate) fn look(&mut self, now: Timestamp) -> NextRebuild {
        let Some(next) = self.next else { return NextRebuild::Never };
        if now >= next {
            self.last = Some(next);
            self.next = self.schedule.after(now);
            return NextRebuild::Now(next);
        }
        let from = self.last.map_or(now, |last| last.max(now));
        self.next = self.schedule.after(from);
        self.next.map_or(NextRebuild::Never, NextRebuild::Wait)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schedule(cron: &str, zone: &str) -> CronSchedule {
        read(cron, zone).unwrap()
    }

    fn read(cron: &str, zone: &str) -> Result<CronSchedule, String> {
        let text = format!("cron = \"{cron}\"\ntimezone = \"{zone}\"");
        toml::from_str(&text).map_err(|error| error.to_string())
    }

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    /// The next `n` times after `from`.
    fn times(schedule: &CronSchedule, from: &str, n: usize) -> Vec<String> {
        let mut now = at(from);
        let mut found = Vec::new();
        for _ in 0..n {
            now = schedule.after(now).unwrap();
            found.push(now.to_string());
        }
        found
    }

    #[test]
    fn every_night() {
        assert_eq!(
            times(&schedule("0 3 * * *", "UTC"), "2026-11-21T03:00:00Z", 2),
            ["2026-11-22T03:00:00Z", "2026-11-23T03:00:00Z"]
        );
        assert_eq!(
            times(&schedule("30 22 * * MON-FRI", "America/New_York"), "2026-11-20T12:00:00Z", 2),
            ["2026-11-21T03:30:00Z", "2026-11-24T03:30:00Z"]
        );
    }

    /// On 29 March 2026 clocks in Zurich go from 2:00 to 3:00, on 25 October from 3:00 to 2:00.
    #[test]
    fn a_missing_hour_is_made_up_and_a_repeated_one_counts_once() {
        let nightly = schedule("30 2 * * *", "Europe/Zurich");
        assert_eq!(
            times(&nightly, "2026-03-28T00:00:00Z", 3),
            ["2026-03-28T01:30:00Z", "2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"]
        );
        assert_eq!(
            times(&nightly, "2026-10-24T12:00:00Z", 2),
            ["2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"]
        );
        let hourly = schedule("0 * * * *", "Europe/Zurich");
        assert_eq!(
            times(&hourly, "2026-03-29T00:00:00Z", 2),
            ["2026-03-29T01:00:00Z", "2026-03-29T02:00:00Z"]
        );
        assert_eq!(
            times(&hourly, "2026-10-24T23:59:00Z", 3),
            ["2026-10-25T00:00:00Z", "2026-10-25T01:00:00Z", "2026-10-25T02:00:00Z"]
        );
    }

    #[test]
    fn bad_expressions_and_zones() {
        for bad in ["", "* * * *", "61 * * * *", "0 0 30 2 *", "0 0 0 * * *", "every day"] {
            let error = read(bad, "UTC").unwrap_err();
            assert!(
                error.contains("is not a cron expression") || error.contains("never"),
                "{error}"
            );
        }
        assert!(read("0 3 * * *", "Europe/Zürich").unwrap_err().contains("is not a time zone"));
    }

    #[test]
    fn what_was_missed_is_one_turn() {
        let mut due = Due::new(schedule("0 * * * *", "UTC"), at("2026-11-22T00:30:00Z"));
        assert_eq!(
            due.look(at("2026-11-22T00:59:59Z")),
            NextRebuild::Wait(at("2026-11-22T01:00:00Z"))
        );
        assert_eq!(
            due.look(at("2026-11-22T07:10:00Z")),
            NextRebuild::Now(at("2026-11-22T01:00:00Z"))
        );
        assert_eq!(
            due.look(at("2026-11-22T07:10:01Z")),
            NextRebuild::Wait(at("2026-11-22T08:00:00Z"))
        );
    }

    #[test]
    fn a_clock_that_goes_back_repeats_nothing() {
        let mut due = Due::new(schedule("0 3 * * *", "UTC"), at("2026-11-22T02:00:00Z"));
        assert_eq!(
            due.look(at("2026-11-22T03:00:00Z")),
            NextRebuild::Now(at("2026-11-22T03:00:00Z"))
        );
        // Back by two hours: three o'clock comes again, and was done.
        assert_eq!(
            due.look(at("2026-11-22T01:00:00Z")),
            NextRebuild::Wait(at("2026-11-23T03:00:00Z"))
        );
        assert_eq!(
            due.look(at("2026-11-22T03:00:00Z")),
            NextRebuild::Wait(at("2026-11-23T03:00:00Z"))
        );
        // A clock that was far ahead and is put right: the next night is not waited for for a year.
        let mut due = Due::new(schedule("0 3 * * *", "UTC"), at("2027-11-22T02:00:00Z"));
        assert_eq!(
            due.look(at("2026-11-22T01:00:00Z")),
            NextRebuild::Wait(at("2026-11-22T03:00:00Z"))
        );
    }
}
