//! `wang` on a device answers as the CPU does: the whole job, on pretended devices.

use crate::support::fixture::Fixture;
use crate::support::pretended::{WANG, pretended};
use crate::support::{Job, millrace};

#[test]
fn wang_on_devices_has_options_of_its_own() {
    let fixture = Fixture::new(82, 30);
    let wang = ["--algorithm", "wang", "--score", "wang", "--mode", "and"];
    let refused: [(&[&str], &str); 4] = [
        (&["--query-threads", "64"], "goes with --algorithm huang, or wang on a GPU"),
        (&["--device", "gpu", "--query-threads", "320"], "wang takes 64, 128, 256, 512, 1024"),
        (
            &["--device", "gpu", "--gpu-partition"],
            "--algorithm wang does not go with --gpu-partition",
        ),
        (&["--cached", "planned"], "goes with --device gpu"),
    ];
    for (more, why) in refused.into_iter().skip(1) {
        fixture.query(&[&wang[..], more].concat()).stdin("x\n").fails(2).says(why);
    }
    fixture.query(refused[0].0).stdin("x\n").fails(2).says(refused[0].1);
}

/// The whole job, on pretended devices.
#[test]
fn pretended_wang_answers_as_the_cpu_does() {
    let Some(folder) = pretended(&WANG) else { return };
    let fixture = Fixture::new(81, 600);
    let names = fixture.collection.docs.iter().filter_map(|doc| doc.name.as_ref());
    let ranks = names.zip(0..).map(|(name, n): (_, u32)| format!("{name}\t{}\n", n * 31 % 17));
    let ranks = fixture.scratch.write("ranks.tsv", ranks.collect::<String>());
    let index = fixture.scratch.path("global");
    let build = millrace(["build", "--quiet", "--order", "global", "--alpha", "0.4", "--index"]);
    let docs = fixture.scratch.path("c.jsonl");
    build.arg(&index).arg("--pagerank").args([&ranks, &docs]).ok();
    let queries = fixture.queries(83, 40).join("\n");
    let on_devices = |job: Job| {
        let job = job.env("LD_LIBRARY_PATH", &folder).env("PRETENDED_GPUS", "2");
        job.env("MILLRACE_CACHE", fixture.scratch.path("cache")).stdin(queries.clone())
    };
    let ask = |more: &[&str]| {
        let job = millrace(["query", "--quiet", "--format", "tsv", "--score", "wang", "--index"]);
        on_devices(job.arg(&index).args(["--mode", "and"]).args(more))
    };
    let path = fixture.scratch.path("report.json");
    let device = ["--device", "gpu", "--algorithm", "wang", "--report", path.to_str().unwrap()];
    // Beginnings of lists, so that the CPU ends some queries.
    let cache = ["cache", "--quiet", "--memory", "12K", "--lambda", "0.5", "-k", "3", "--index"];
    millrace(cache).arg(&index).stdin(queries.clone()).ok();
    // In 1 KB no list has room, so that all travel. Of some documents alone the CPU is asked.
    for (asked, memory, cached) in [
        (&["-k", "5", "--alpha", "0.4"][..], "1K", "longest"),
        (&["-k", "700", "--alpha", "0.4"], "16M", "longest"),
        (&["-k", "5", "--alpha", "0.4"], "16M", "planned"),
        (&["-k", "5", "--alpha", "0.4", "--docids", "100..450"], "16M", "planned"),
    ] {
        let more = [asked, &device, &["--gpu-memory", memory, "--cached", cached]].concat();
        let found = ask(&more).ok().text().to_owned();
        let expected = ask(&[asked, &["--device", "cpu", "--algorithm", "exhaustive"]].concat());
        assert_eq!(found, expected.ok().text(), "{asked:?} {memory}");
        let report = std::fs::read_to_string(&path).unwrap();
        let gpu = &serde_json::from_str::<serde_json::Value>(&report).unwrap()["gpu"];
        let is_part = asked.contains(&"--docids");
        let continues = cached == "planned" && !is_part;
        assert_eq!(gpu["continued"].as_u64() > Some(0), continues, "{gpu}");
        assert_eq!((gpu["answered"] == 0, gpu["unsuited"] == 0), (is_part, !is_part), "{gpu}");
        assert_eq!((&gpu["without_lists"], &gpu["lost"]), (&0.into(), &0.into()), "{gpu}");
    }
    // An index in another order, or in that for other parameters.
    let refused = ask(&device).fails(1);
    refused.says("in global order for alpha 0.4, and 0.3 is asked for");
    let plain = fixture.query(&["--score", "wang", "--mode", "and"]).args(device);
    on_devices(plain).fails(1).says("documents are not in global order");
}
