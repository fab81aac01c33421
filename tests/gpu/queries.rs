//! A device answers as the CPU does: the whole job, on a device and on pretended devices, with the
//! same documents in the same order with the same scores, to the bit.

use super::found;
use crate::support::fixture::Fixture;
use crate::support::pretended::{QUERY, pretended};

/// Queries of a collection on a device and on the CPU, through the binary.
#[test]
fn a_device_answers_as_the_cpu_does() {
    if found().is_none() {
        return;
    }
    // Long lists are decoded on the device, short ones are made on the host.
    let fixture = Fixture::new(71, 9000);
    let queries = fixture.queries(72, 300).join("\n");
    let asked = [
        ("or", "10", "bm25"),
        ("or", "1000", "dph"),
        ("or", "70000", "bm25"),
        ("and", "1", "bm25plus"),
        ("and", "1000", "bm25"),
        ("and-or", "10", "bm25l"),
        ("and-or", "10", "ql"),
        ("or", "1000", "bm25"),
    ];
    for (mode, k, score) in asked {
        let asked = ["--mode", mode, "-k", k, "--score", score, "--format", "tsv"];
        let of = |more: &[&str]| {
            let job = fixture.query(&asked).args(more).stdin(queries.clone());
            job.ok().text().to_owned()
        };
        let label = format!("{mode} {k} {score}");
        let expected = of(&["--algorithm", "exhaustive"]);
        assert_eq!(of(&["--device", "gpu"]), expected, "{label}");
        let range = of(&["--docids", "100..3000"]);
        assert_eq!(of(&["--device", "gpu", "--docids", "100..3000"]), range, "{label}");
        let parts = of(&["--device", "gpu", "--gpu-partition"]);
        assert_eq!(parts, expected, "{label}, in parts");
        // As graphs.
        let few = ["--batch", "2", "--delay-ms", "0"];
        assert_eq!(of(&[&["--device", "gpu"], &few[..]].concat()), expected, "{label}, few");
        // Hardly any list has room.
        assert_eq!(of(&["--device", "gpu", "--gpu-memory", "64K"]), expected, "{label}");
    }
}

/// The same on pretended devices, one and more, with all of the documents and with parts
/// of them.
#[test]
fn pretended_devices_answer_as_the_cpu_does() {
    let Some(folder) = pretended(&QUERY) else { return };
    let fixture = Fixture::new(74, 700);
    let queries = fixture.queries(75, 24).join("\n");
    let alone: [&[&str]; 4] = [
        &[],
        &["--gpus", "3", "--gpu-partition"],
        &["--gpus", "2", "--batch", "3", "--delay-ms", "0"],
        // Hardly any list has room.
        &["--gpus", "2", "--gpu-partition", "--gpu-memory", "4K"],
    ];
    for (mode, k, docids) in [("or", "5", ".."), ("and", "5", ".."), ("and-or", "40", "100..550")] {
        let asked = ["--mode", mode, "-k", k, "--docids", docids, "--format", "tsv"];
        let of = |more: &[&str]| {
            let job = fixture.query(&asked).args(more).stdin(queries.clone());
            let job = job.env("LD_LIBRARY_PATH", &folder).env("PRETENDED_GPUS", "3");
            job.env("MILLRACE_CACHE", fixture.scratch.path("cache")).ok().text().to_owned()
        };
        let expected = of(&["--algorithm", "exhaustive"]);
        for more in alone {
            let memory: &[&str] = if more.contains(&"4K") { &[] } else { &["--gpu-memory", "16M"] };
            let found = of(&[&["--device", "gpu"], more, memory].concat());
            assert_eq!(found, expected, "{mode} {k} {more:?}");
        }
    }
    // A list that no parcel has room for goes by itself; nothing travels after it that would tell
    // of it.
    let word = fixture.collection.words.phrase(&mut crate::support::Random::new(76), 1);
    let job = |more: &[&str]| {
        let job = fixture.query(&["--format", "tsv"]).args(more).stdin(word.clone() + "\n");
        let job = job.env("LD_LIBRARY_PATH", &folder).env("MILLRACE_PARCEL_BYTES", "16");
        job.env("MILLRACE_CACHE", fixture.scratch.path("cache")).ok().text().to_owned()
    };
    let found = job(&["--device", "gpu", "--gpu-memory", "16M"]);
    assert!(!found.is_empty() && found == job(&["--algorithm", "exhaustive"]), "{word}");
    // Signs and counts are left to the CPU, and that is told.
    let report = fixture.scratch.path("report");
    let signed: Vec<String> =
        fixture.queries(75, 24).iter().map(|query| format!("+{query} -zzz")).collect();
    let of = |more: &[&str]| {
        let asked = ["--syntax", "operators", "--count", "--format", "tsv"];
        let job = fixture.query(&asked).args(more).stdin(signed.join("\n"));
        let job = job.env("LD_LIBRARY_PATH", &folder).env("PRETENDED_GPUS", "3");
        job.env("MILLRACE_CACHE", fixture.scratch.path("cache")).ok().text().to_owned()
    };
    let by_device =
        ["--device", "gpu", "--gpu-memory", "16M", "--report", report.to_str().unwrap()];
    assert_eq!(of(&by_device), of(&[]));
    let report: serde_json::Value =
        serde_json::from_slice(&std::fs::read(report).unwrap()).unwrap();
    assert_eq!(report["gpu"]["unsuited"], 24, "{report}");
}

/// Queries that a device leaves to the CPU are counted at the end, once, with the reasons.
#[test]
fn queries_that_the_cpu_answered_are_counted_once() {
    let Some(folder) = pretended(&QUERY) else { return };
    let fixture = Fixture::new(78, 700);
    let long = fixture.collection.words.phrase(&mut crate::support::Random::new(79), 400);
    let short = fixture.queries(80, 24).join("\n");
    let asked = |queries: &str, more: &[&str]| {
        let job = crate::support::millrace(["query", "--device", "gpu", "--format", "tsv"]);
        let job = job.arg("--index").arg(&fixture.index).args(more);
        let job = job.env("LD_LIBRARY_PATH", &folder).stdin(queries.to_string() + "\n");
        job.env("MILLRACE_CACHE", fixture.scratch.path("cache")).ok()
    };
    let room: &[&str] = &["--gpu-memory", "16M"];
    let both = asked(&format!("{long}\n{short}\n{long}"), room);
    let both = both.says("CPU answered 2 queries instead of a GPU: 2 because no GPU answers such");
    assert_eq!(both.stderr.matches("the CPU").count(), 1, "{both:?}");
    asked(&long, room).says("the CPU answered 1 query instead of a GPU: 1 because no GPU answers");
    let quiet = asked(&long, &[room, &["--quiet"]].concat());
    assert!(quiet.stderr.is_empty(), "{quiet:?}");
    let alone = asked(&short, room);
    assert!(!alone.stderr.contains("the CPU"), "{alone:?}");
    let hardly = asked(&format!("{short}\n{long}"), &["--gpu-memory", "4K"]);
    hardly.says("; ").says("because their lists had no room on it or could not be read");
}

#[test]
fn without_a_device_the_job_says_why() {
    let fixture = Fixture::new(73, 30);
    let job = fixture.query(&["--device", "gpu"]).env("CUDA_VISIBLE_DEVICES", "").stdin("x\n");
    job.fails(1).says("no GPU can be used");
    let others: [&[&str]; 3] = [&["--gpus", "1"], &["--gpu-memory", "1G"], &["--gpu-partition"]];
    for more in others {
        fixture.query(more).stdin("x\n").fails(2).says("goes with --device gpu");
    }
    let more = ["--device", "gpu", "--parallelism", "fgqp"];
    fixture.query(&more).stdin("x\n").fails(2).says("--parallelism inter");
}

#[test]
fn a_scheduler_over_cpu_and_pretended_devices_answers_as_the_cpu_does() {
    let Some(folder) = pretended(&QUERY) else { return };
    let fixture = Fixture::new(76, 500);
    let queries = fixture.queries(77, 16).join("\n");
    let with = |job: crate::support::Job| {
        let job = job.stdin(queries.clone()).env("LD_LIBRARY_PATH", &folder);
        job.env("PRETENDED_GPUS", "1").env("MILLRACE_CACHE", fixture.scratch.path("cache"))
    };
    let hybrid = ["--device", "hybrid", "--gpu-memory", "16M", "--format", "tsv"];
    with(fixture.query(&hybrid)).fails(1).says("run millrace calibrate first");

    let costs = fixture.scratch.path("costs");
    let asked = ["calibrate", "--gpu-memory", "16M", "--sample", "9", "--index"];
    let job = crate::support::millrace(asked).arg(&fixture.index).arg("--costs").arg(&costs);
    let report: serde_json::Value = serde_json::from_str(with(job).ok().text()).unwrap();
    let lines = std::fs::read_to_string(&costs).unwrap();
    assert_eq!(report["queries"], lines.lines().count());
    assert!(report["mean_s"]["device"].as_f64().unwrap() > 0.0);

    let expected = with(fixture.query(&["--format", "tsv", "--algorithm", "exhaustive"])).ok();
    for schedule in ["auto", "ding09", "best-serial"] {
        let of = fixture.scratch.path("report");
        let job = fixture.query(&hybrid).args(["--schedule", schedule, "--report"]).arg(&of);
        assert_eq!(with(job).ok().text(), expected.text(), "{schedule}");
        let report: serde_json::Value =
            serde_json::from_slice(&std::fs::read(&of).unwrap()).unwrap();
        let shares = [&report["shares"]["cpu"], &report["shares"]["devices"]];
        let sum: u64 = shares.iter().map(|share| share.as_u64().unwrap()).sum();
        assert_eq!(sum, report["queries"].as_u64().unwrap(), "{report}");
    }
    with(fixture.query(&hybrid).args(["--mode", "and"])).fails(1).says("--mode and are known");

    // A device that fails in the middle of the stream loses no query, and no order.
    for fault in ["trap@2", "full@2"] {
        let of = fixture.scratch.path("report");
        let few =
            ["--schedule", "gpu", "--deadline-ms", "1", "--batch", "4", "-w", "2", "--report"];
        let job = crate::support::millrace(["query", "--index"]).arg(&fixture.index).args(hybrid);
        let job = job.args(few).arg(&of).env("PRETENDED_FAULT", fault);
        let done = with(job).ok();
        assert_eq!(done.text(), expected.text(), "{fault}");
        let report: serde_json::Value =
            serde_json::from_slice(&std::fs::read(&of).unwrap()).unwrap();
        assert!(report["shares"]["cpu"].as_u64().unwrap() > 0, "{fault}: {report}");
    }
}
