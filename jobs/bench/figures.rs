//! Which figures do the rows of an experiment make? Those of the papers, under the papers' numbers, and what the papers have beside them.

use millrace::chart::figures::Figure;

/// The figures of an experiment, by its name.
pub(super) fn of(experiment: &str) -> Vec<Figure> {
    match experiment {
        "pipeline" => wei11(),
        "btree" => btree(),
        "parallelism" => tatikonda11(),
        "cpu-queries" => cpu_queries(),
        "codecs" => codecs(),
        "gpu-queries" => [gpu_queries(), ding09(), huang(), wang_gpu()].concat(),
        "wang" => wang(),
        "scheduling" => scheduling(),
        "queries" => {
            let times = ["mean_us", "p50_us", "p95_us", "p99_us"];
            vec![Figure::bars("Latency of a query", &[], (&times, "microseconds"))]
        }
        "ceilings" => {
            let speed = "GB of text a second";
            let speed = Figure::bars("Speed of all stages up to one", &[], (&["gb_per_s"], speed));
            let own = "ns of a core for a byte";
            let own = Figure::bars("Time of a stage alone", &[], (&["own_ns_per_byte"], own));
            [speed, own].map(|figure| figure.by(&["stage", "threads"])).into()
        }
        "gpu-indexing" => {
            vec![Figure::bars("Time by kernel", &[], (&["ms"], "milliseconds")).by(&["kernel"])]
        }
        _ => Vec::new(),
    }
}

fn wei11() -> Vec<Figure> {
    let of = |figure| [("figure", figure)];
    let speed = "MB of text a second";
    let roles = ["parsers", "cpu_indexers", "gpu_indexers"];
    let steps = ["preprocessing_s", "indexing_s", "postprocessing_s"];
    let whole = ["prepare_s", "parsers_s", "indexers_s", "finish_s", "total_s"];
    vec![
        Figure::curves("Throughput by number of parsers (wei11, figure 10)", &of("parsers"), ("parsers", "parsers"), (&["mb_per_s"], speed))
            .by(&["scenario", "gpu_indexers"]),
        Figure::bars("Steps by indexers (wei11, table IV)", &of("indexers"), (&steps, "seconds of the slowest worker or indexer"))
            .by(&roles)
            .stacked()
            .note("Steps of several workers overlap here, so that their sum may be more than the whole."),
        Figure::bars("Throughput of indexing (wei11, table IV)", &of("indexers"), (&["indexing_mb_per_s", "total_indexer_mb_per_s"], speed))
            .by(&roles),
        Figure::bars("CPU and GPU together, beside the sum of both alone (wei11, IV.B)", &of("superlinear"), (&["cpu_mb_per_s", "gpu_mb_per_s", "sum_mb_per_s", "both_mb_per_s"], speed))
            .by(&["gpu_indexers"]),
        Figure::curves("Throughput by number of GPUs", &of("gpus"), ("gpus", "GPUs"), (&["mb_per_s"], speed))
            .by(&["cpu_indexers"]),
        Figure::curves("Throughput of indexing by part of the input (wei11, figure 11)", &of("files"), ("split", "part"), (&["mb_per_s"], speed))
            .by(&["cpu_indexers", "gpu_indexers"]),
        Figure::bars("The whole job (wei11, table VI)", &of("whole"), (&whole, "seconds"))
            .by(&["indexer", "gpu_indexers"]),
        Figure::bars("Throughput of the whole job (wei11, table VI)", &of("whole"), (&["mb_per_s"], speed))
            .by(&["indexer", "gpu_indexers"])
            .note("wei11 has 262.8 MB/s for HTML with 8 cores and two C1060, 204.3 without GPUs, and 78.3 for text."),
    ]
}

fn btree() -> Vec<Figure> {
    let tokens = "tokens a second";
    vec![
        Figure::bars("B-trees on one core", &[("on", "cpu")], (&["tokens_per_s"], tokens)),
        Figure::curves(
            "B-trees on a GPU by thread blocks (wei11, III.D.2)",
            &[("on", "gpu")],
            ("blocks", "thread blocks"),
            (&["insert_tokens_per_s", "pipelined_tokens_per_s"], tokens),
        )
        .by(&["warps", "slots", "blocks_per_sm"])
        .note("wei11 found 480 thread blocks best on a C1060."),
    ]
}

fn tatikonda11() -> Vec<Figure> {
    let of = |figure| [("figure", figure)];
    let model = ["model", "delta"];
    let by_workers = |title, figure, y, unit| {
        Figure::curves(title, &of(figure), ("workers", "workers"), (&[y], unit)).by(&model)
    };
    let by_delta = |title, y, unit| {
        Figure::curves(title, &of("delta-closed-loop"), ("delta", "delta"), (&[y], unit))
            .by(&["model"])
    };
    let by_load = |title, figure| {
        Figure::curves(
            title,
            &of(figure),
            ("load", "queries that arrive, over what inter can answer"),
            (&["mean_us"], "mean latency, microseconds"),
        )
        .by(&["model", "workers"])
        .log(false, true)
    };
    let by_length = |title, y, unit| {
        Figure::curves(title, &of("length"), ("length", "terms"), (&[y], unit)).by(&["model"])
    };
    let by_skip = |title, y: &[&str], unit| {
        let without = ["model"];
        Figure::curves(title, &of("skips"), ("skip", "postings in a skip"), (y, unit))
            .without(&without)
            .log(true, false)
    };
    vec![
        by_workers("Throughput by workers (tatikonda11, figure 4a)", "models-closed-loop", "throughput_over_inter_1", "times inter on one worker")
            .note("tatikonda11, 8 cores: INTER 7.9 times; FGQP loses 3.3 % at delta 150, DOCP-UI 36 % and DOCP-PI 41 %."),
        by_workers("Processing time by workers (tatikonda11, figure 4b)", "models-closed-loop", "processing_us", "microseconds"),
        by_workers("Mean latency by workers at light load", "models-light-load", "mean_us", "microseconds"),
        by_delta("Loss of throughput by delta (tatikonda11, figure 4c)", "throughput_degradation_percent", "% of inter on as many workers"),
        by_delta("Gain of processing time by delta (tatikonda11, figure 4c)", "processing_gain_over_inter_1", "times inter on one worker")
            .note("tatikonda11, 8 cores: the gain falls from 5.75 at delta 5 to 3.7 at delta 200."),
        by_load("Latency by load (tatikonda11, figure 5a)", "load"),
        by_length("Latency by number of terms at light load (tatikonda11, figure 5b)", "mean_us", "microseconds").with(&["rate"]),
        by_length("Throughput by number of terms (tatikonda11, figure 5c)", "queries_per_s", "queries a second").without(&["rate"]),
        by_load("Latency of queries of 4 terms by load (tatikonda11, figure 6)", "load-of-4"),
        by_load("Latency of queries of 6 terms by load (tatikonda11, figure 6)", "load-of-6"),
        by_skip("Tasks by size of a skip (tatikonda11, figure 7)", &["tasks_over_those_of_longest", "creation_over_that_of_longest"], "times those of 512 postings"),
        by_skip("Skips of a task (tatikonda11, figure 7)", &["skips_a_list_and_task", "overlaps_a_list_and_task"], "skips of a list")
            .note("tatikonda11: 10.2 skips of a list in a task of 512 postings, 0.97 of them shared with the next task."),
        Figure::curves("Latency by size of a skip", &of("skips"), ("skip", "postings in a skip"), (&["mean_us"], "microseconds"))
            .by(&["model"])
            .with(&["model", "rate"])
            .log(true, false),
    ]
}

fn cpu_queries() -> Vec<Figure> {
    let of = |table| [("table", table)];
    let stages = ["look_up_us", "decompression_us", "intersection_us", "scoring_us"];
    vec![
        Figure::bars(
            "Stages of a query, best 10 (ding09, table 2)",
            &of("ding09 table 2"),
            (&stages, "microseconds"),
        )
        .by(&["algorithm"])
        .stacked()
        .note("The program needs to be built with --features stages for this figure."),
        Figure::bars(
            "Mean time of a query (huang, table 1)",
            &of("huang table 1"),
            (&["mean_us"], "microseconds"),
        )
        .by(&["algorithm", "k"]),
        Figure::curves(
            "Mean time by blocks that a query has, best 10 (huang, figure 3)",
            &of("huang figure 3"),
            ("blocks_from", "blocks, at least"),
            (&["mean_us"], "microseconds"),
        )
        .by(&["algorithm"])
        .log(true, true),
    ]
}

fn codecs() -> Vec<Figure> {
    let setting = ["codec", "levels", "block"];
    let all = |title, y: &[&str], unit| {
        Figure::bars(title, &[], (y, unit)).by(&setting).without(&["length_from"])
    };
    let by_length = |title, y, unit| {
        let of = [("default", "true")];
        Figure::curves(title, &of, ("length_from", "postings of a list, at least"), (&[y], unit))
            .by(&setting)
            .log(true, false)
    };
    vec![
        all("Size (ding09, figure 3)", &["bytes_a_docid", "bytes_a_tf"], "bytes").stacked(),
        all("Decoding of gaps (ding09, table 1)", &["gaps_per_s"], "numbers a second")
            .note("ding09, one core of 2009: Rice 0.31 G a second, PForDelta 1.17 G."),
        by_length(
            "Decoding of docids by length (ding09, figure 4)",
            "docids_per_s",
            "docids a second",
        ),
        by_length("Size of a docid by length", "bytes_a_docid", "bytes"),
    ]
}

/// Engines of our own, which no paper has.
fn gpu_queries() -> Vec<Figure> {
    let latency = ["device_p50_us", "p50_us", "device_p99_us", "p99_us"];
    vec![
        Figure::bars("Queries a second", &[], (&["queries_per_s"], "queries a second"))
            .by(&["row", "engine"])
            .with(&["engine", "queries_per_s"])
            .without(&["k"]),
        Figure::bars("One query at a time", &[("row", "latency")], (&latency, "microseconds"))
            .by(&["name"]),
    ]
}

fn ding09() -> Vec<Figure> {
    let of = |row| [("row", row)];
    let merging = |title, lengths| {
        Figure::curves(
            title,
            &[("row", "ding09-figure6"), ("lengths", lengths)],
            ("b", "length of the longer list"),
            (&["ns_per_element"], "ns an element of the shorter"),
        )
        .by(&["merge_levels"])
        .log(true, true)
    };
    let speeds = ["docids_m_per_s", "gaps_m_per_s", "cpu_docids_m_per_s"];
    let stages = |title, mode, parts: &[&str]| {
        Figure::bars(
            title,
            &[("row", "ding09-table3"), ("mode", mode)],
            (parts, "parts of the whole"),
        )
        .by(&["batch"])
        .stacked()
    };
    let by_terms = |title, x, name| {
        Figure::curves(title, &of("ding09-terms"), (x, name), (&["mean_us"], "microseconds"))
            .by(&["mode"])
    };
    vec![
        Figure::bars(
            "Decoding (ding09, table 1)",
            &of("ding09-table1"),
            (
                &[
                    "gaps_m_per_s",
                    "docids_m_per_s",
                    "cpu_docids_m_per_s",
                    "paper_gpu_m_per_s",
                    "paper_cpu_m_per_s",
                ],
                "millions a second",
            ),
        )
        .by(&["codec"]),
        Figure::curves(
            "Decoding by length of the list (ding09, figure 4)",
            &of("ding09-figure4"),
            ("postings_upto", "postings, at most"),
            (&speeds, "millions a second"),
        )
        .log(true, true),
        merging("Parallel Merge Find, lists of equal length (ding09, figure 6)", "equal"),
        merging(
            "Parallel Merge Find, 200,000 numbers in a longer list (ding09, figure 6)",
            "200,000 in more",
        )
        .note("ding09 has 4 to 15 ns."),
        Figure::bars(
            "One query at a time, best 10 (ding09, table 2)",
            &of("ding09-table2"),
            (&["mean_ms", "paper_gpu_ms", "paper_cpu_ms"], "milliseconds"),
        )
        .by(&["mode"]),
        stages(
            "Stages of AND (ding09, table 3)",
            "and",
            &["shares/top-k scoring", "shares/intersection", "shares/decompression"],
        )
        .note("ding09: top-k scoring 8 %, intersection 45 %, decompression 47 %."),
        stages(
            "Stages of OR (ding09, table 3)",
            "or",
            &["shares/initialization", "shares/decompression", "shares/scoring", "shares/top-k"],
        )
        .note("ding09: initialization 9 %, decompression 30 %, scoring 48 %, top-k 13 %."),
        by_terms("Time by number of terms (ding09, 8.4)", "terms", "terms"),
        by_terms(
            "Time by postings of all lists (ding09, 8.4)",
            "postings_upto",
            "postings, at most",
        )
        .log(true, true),
        Figure::bars(
            "Many queries at a time",
            &of("ding09-batched"),
            (&["queries_per_s"], "queries a second"),
        )
        .by(&["mode", "k"]),
    ]
}

fn huang() -> Vec<Figure> {
    let of = |row| [("row", row)];
    // Eighteen curves in one chart could not be told apart.
    let mut figures: Vec<Figure> = ["1", "10", "20"]
        .map(|k| {
            let title = format!("Time of a query by threads of a block, best {k} (huang, table 1)");
            let of = [("row", "huang-table1"), ("k", k)];
            let threads = ("threads", "threads of a block");
            Figure::curves(&title, &of, threads, (&["us"], "microseconds"))
                .by(&["way"])
                .log(true, true)
        })
        .into();
    figures.extend([
        Figure::bars(
            "Time of a query on the CPU (huang, table 1)",
            &[("row", "huang-table1"), ("engine", "cpu")],
            (&["one_thread_us", "all_threads_us"], "microseconds"),
        )
        .by(&["way", "k"]),
        Figure::curves(
            "Time by blocks that a query has (huang, figure 3)",
            &of("huang-figure3"),
            ("blocks_upto", "blocks, at most"),
            (&["us", "one_thread_us"], "microseconds"),
        )
        .by(&["way"])
        .log(true, true),
        Figure::curves(
            "Queries by blocks that they have (huang, figure 4)",
            &of("huang-figure4"),
            ("blocks_upto", "blocks, at most"),
            (&["share_upto"], "share of all queries"),
        )
        .log(true, false)
        .note("huang: 81 % of the queries have fewer than 50,000 blocks."),
        Figure::bars(
            "Stages by threads of a block (huang, figure 5)",
            &of("huang-figure5"),
            (&["initialization", "scoring", "merging"], "parts of the whole"),
        )
        .by(&["way", "threads"])
        .stacked(),
        Figure::curves(
            "Several GPUs (huang, table 3)",
            &of("huang-table3"),
            ("gpus", "GPUs"),
            (&["us"], "microseconds of a query"),
        )
        .by(&["way", "threads"])
        .log(false, true),
    ]);
    figures
}

fn wang() -> Vec<Figure> {
    let of = |row| [("row", row)];
    let by_size = |title, y, unit| {
        Figure::curves(
            title,
            &of("figure7"),
            ("size", "cache, as a part of all lists"),
            (&[y], unit),
        )
        .by(&["policy", "lambda"])
    };
    vec![
        Figure::curves(
            "Visits by offset in the list of the most frequent term (wang, figure 3)",
            &of("figure3"),
            ("part", "twentieths of the list"),
            (&["visits_by_offset"], "queries"),
        ),
        by_size("Transfer volume (wang, figure 7)", "transfer_bytes_per_query", "bytes of a query"),
        by_size("Hit rate (wang, figure 7)", "hit_rate", "share of the lists asked for"),
        by_size("Queries that the CPU has to end", "left_to_the_cpu", "share of the queries"),
        Figure::curves(
            "Queries a second by threads (wang, figure 10, CPU)",
            &of("figure10"),
            ("threads", "threads"),
            (&["queries_per_s"], "queries a second"),
        )
        .by(&["algorithm", "k"]),
    ]
}

fn wang_gpu() -> Vec<Figure> {
    let of = |row| [("row", row)];
    let rate = "queries a second";
    let part = ("cache_of_memory", "cache, as a part of the memory");
    vec![
        Figure::curves("c: time of a query by size of the batch (wang, figure 4)", &of("wang-figure4"), ("batch", "queries of a batch"), (&["c_us"], "microseconds"))
            .log(true, false),
        Figure::curves("t: time of a transfer by size of the buffer (wang, figure 4)", &of("wang-figure4"), ("buffer_bytes", "bytes of the buffer"), (&["t_us_per_mb"], "microseconds a MB"))
            .log(true, false),
        Figure::curves("dq: transfer volume by cache (wang, figure 4)", &of("wang-figure4"), part, (&["dq_mb"], "MB of a query")).by(&["policy"]),
        Figure::curves("The model and what was measured (wang, figure 5)", &of("wang-figure5"), part, (&["queries_per_s", "model_queries_per_s"], rate))
            .by(&["policy", "deadline_ms"]),
        Figure::curves("GPU and post-processing, one after the other (wang, figure 6)", &of("wang-figure6"), ("cache_of_index", "cache, as a part of the index"), (&["gpu_us", "post_us"], "microseconds of a query"))
            .by(&["lambda"]),
        Figure::curves("Throughput by memory (wang, figure 8)", &of("wang-figure8"), ("memory_of_index", "memory, as a part of the index"), (&["queries_per_s"], rate))
            .by(&["policy", "lambda"]),
        Figure::curves("Throughput under a deadline (wang, figure 9)", &of("wang-figure9"), ("deadline_ms", "deadline, ms"), (&["queries_per_s"], rate))
            .by(&["policy", "lambda"]),
        Figure::curves("Threads of the CPU (wang, figure 10)", &of("wang-figure10"), ("cpu_threads", "threads"), (&["queries_per_s"], rate))
            .by(&["k"])
            .without(&["engine"]),
        Figure::bars("GPU, and both together (wang, figure 10)", &[("row", "wang-figure10"), ("engine", "gpu")], (&["queries_per_s", "together_queries_per_s"], rate))
            .by(&["k"])
            .note("wang: both together are faster than either; against eight threads the GPU gains 3 to 24 %."),
    ]
}

fn scheduling() -> Vec<Figure> {
    let by_rate = |title, y| {
        Figure::curves(
            title,
            &[("row", "load")],
            ("queries_per_s", "queries a second"),
            (&[y], "milliseconds"),
        )
        .by(&["schedule", "run"])
        .dashed("run", "simulated")
        .log(false, true)
    };
    let by_schedule = |title, row, run| {
        Figure::bars(title, &[("row", row), ("run", run)], (&["queries_per_s"], "queries a second"))
            .by(&["schedule"])
    };
    vec![
        by_rate("Mean latency by rate (ding09, figure 7)", "mean_ms"),
        by_rate("99th percentile of latencies by rate (ding09, figure 7)", "p99_ms")
            .note("ding09, a GeForce 8800 GTS and one core of 2009, AND, a deadline of 500 ms: CPU alone less than 100 queries a second, CPU and GPU by its schedule more than 300."),
        by_schedule("Highest rate without a missed deadline, real", "highest", "real"),
        by_schedule("Highest rate without a missed deadline, simulated", "highest", "simulated"),
        by_schedule("All queries at once, real", "together", "real"),
        by_schedule("All queries at once, simulated", "together", "simulated").without(&["swept"]),
        Figure::curves("Mean latency of queries that hardly meet, by their length, real", &[("row", "light")], ("blocks/1", "blocks of 64 postings, at most"), (&["mean_ms"], "milliseconds"))
            .by(&["schedule"])
            .log(false, true),
        Figure::curves("All queries at once by threshold of blocks, simulated (huang, figure 6)", &[("row", "together")], ("threshold", "blocks of 64 postings"), (&["of_sd"], "time over that of random halves, sd"))
            .by(&["swept"])
            .note("huang, table 2, best 10, 64 threads a query, ms a query by SD and LBD: AND 4.20 and 2.11, OR 17.54 and 8.76, WAND 4.85 and 2.69, BMW 3.82 and 1.44; the best threshold was 30,000 blocks."),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn sources(path: &Path, all: &mut String) {
        match path.is_dir() {
            true => std::fs::read_dir(path)
                .unwrap()
                .for_each(|entry| sources(&entry.unwrap().path(), all)),
            false if path.ends_with("figures.rs") && path.parent().unwrap().ends_with("bench") => {}
            false => *all += &std::fs::read_to_string(path).unwrap(),
        }
    }

    #[test]
    fn figures_are_of_fields_that_rows_have() {
        let (mut all, mut count) = (String::new(), 0);
        sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("jobs/bench"), &mut all);
        all +=
            &std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("jobs/bench.rs"))
                .unwrap();
        let command = crate::cli();
        let bench = command.find_subcommand("bench").unwrap();
        for experiment in bench.get_subcommands() {
            for figure in of(experiment.get_name()) {
                let x = figure.x.iter().map(|x| &x.0).filter(|x| *x != "part");
                let dashed = figure.dashed.iter().map(|dashed| &dashed.0);
                let of = figure.of.iter().map(|of| &of.0);
                let more = figure.with.iter().chain(&figure.without).chain(dashed).chain(of);
                for field in figure.by.iter().chain(&figure.y).chain(x).chain(more) {
                    let name = field.split('/').next().unwrap_or(field);
                    assert!(all.contains(&format!("\"{name}\"")), "{}: {field}", figure.title);
                }
                count += 1;
            }
        }
        assert!(count > 50, "{count}");
    }
}
