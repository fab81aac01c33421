//! Documents added, replaced and deleted by call: answers are those of an index that was built from
//! nothing of what lives.

#[cfg(debug_assertions)]
mod storage;

use crate::support::sound::{ask, assert_sound, current};
use crate::support::*;
use millrace::inside::index::{Stop, merge_index, rollback};
use millrace::{BuildOptions, Index, OwnedDocument, Update, Writer};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Names and texts in the order of docids.
type Model = Vec<(String, String)>;

fn lines(documents: &[(String, String)]) -> Vec<u8> {
    let doc =
        |(name, text): &(String, String)| Doc { name: Some(name.clone()), text: text.clone() };
    jsonl(&documents.iter().map(doc).collect::<Vec<_>>())
}

/// The documents of these names go, and come behind the others as the call has them last.
fn updated(model: &Model, new: &Model) -> Model {
    let is_new = |name: &String| new.iter().any(|(other, _)| other == name);
    let left = model.iter().filter(|(name, _)| !is_new(name)).cloned();
    let last = |at: &usize| new[at + 1..].iter().all(|(other, _)| *other != new[*at].0);
    left.chain((0..new.len()).filter(last).map(|at| new[at].clone())).collect()
}

fn generation(index: &Path) -> u32 {
    let name = current(index).unwrap();
    name.file_name().unwrap().to_str().unwrap()[4..].parse().unwrap()
}

/// Compares the index with one that is built from nothing of what lives.
fn assert_as_built(index: &Path, model: &Model, queries: &[String], when: &str) {
    assert_sound(index, when);
    let found = info(index);
    assert_eq!(found["documents"], model.len(), "{when}");
    assert!(found["runs"].as_array().map_or(1, Vec::len) <= 16, "{when}");
    let scratch = Scratch::new();
    let expected = scratch.path("expected");
    let input = scratch.write("all.jsonl", lines(model));
    build(&expected, args!["--allow-empty", input]);
    let ask = |index| ask(index, true, queries).unwrap();
    assert_eq!(ask(index), ask(&expected), "{when}");
}

fn steps(count: usize, seed: u64) {
    let began = Instant::now();
    let scratch = Scratch::new();
    let index = scratch.path("index");
    let mut random = Random::new(seed);
    let words = Collection::new(seed, 1, 10).words;
    let queries: Vec<String> = (0..10).map(|_| words.phrase(&mut random, 3)).collect();
    let document = |random: &mut Random, names: usize| {
        let length = 1 + random.below(20);
        (format!("name-{}", random.below(names)), words.phrase(random, length))
    };
    let mut model: Model =
        updated(&Vec::new(), &(0..300).map(|_| document(&mut random, 400)).collect());
    build(&index, args![scratch.write("all.jsonl", lines(&model))]);
    let mut models = HashMap::from([(1, model.clone())]);
    let change = |documents: &Model| {
        let owned =
            documents.clone().into_iter().map(|(name, text)| OwnedDocument::new(name, text));
        let mut build = BuildOptions::of_documents(&index, owned);
        (build.workers, build.memory) = (1, 64 << 20);
        Update { allow_shrink: true, ..Update::new(build) }
    };
    // Both stay open while others write to the index too.
    let reader = Index::open(&index).unwrap();
    let mut writer = Writer::new(&index);
    (writer.workers, writer.memory) = (1, 64 << 20);
    for step in 0..count {
        match random.below(20) {
            0 => {
                let stop = Stop::default();
                merge_index(&index, 64 << 20, "test", 1, Default::default(), &stop).unwrap();
            }
            1 if step > 5 => {
                // To the last point, if there is one.
                if let Ok(back) = rollback(&index, None) {
                    model = models[&back.to].clone();
                }
            }
            2..6 => {
                let names: Vec<Vec<u8>> =
                    (0..3).map(|_| document(&mut random, 400).0.into_bytes()).collect();
                let gone = |name: &String| names.iter().any(|gone| gone == name.as_bytes());
                let count = model.len();
                model.retain(|(name, _)| !gone(name));
                let told = change(&Vec::new()).delete(&names).unwrap();
                assert_eq!(told.deleted, (count - model.len()) as u64);
            }
            // Several, so that merges beside commits come to their end.
            6..10 => (0..1 + random.below(6)).for_each(|_| {
                writer.update("name-1", "lost");
                writer.abort();
                let (gone, new) = (document(&mut random, 400), document(&mut random, 400));
                writer.update(gone.0.clone(), gone.1);
                writer.update(new.0.clone(), "replaced before it is seen");
                writer.delete(gone.0.clone());
                writer.update(new.0.clone(), new.1.clone());
                model.retain(|(name, _)| *name != gone.0);
                model = updated(&model, &vec![new]);
                let told = writer.commit(random.below(10) == 0).unwrap();
                assert_eq!((told.documents, writer.pending()), (model.len() as u64, 0));
                models.insert(generation(&index), model.clone());
                reader.move_to(writer.generation().unwrap()).unwrap();
                assert!(!reader.refresh().unwrap(), "it is there already");
            }),
            10 => {
                let new: Model =
                    (0..1 + random.below(5)).map(|_| document(&mut random, 400)).collect();
                let input = scratch.write("killed.jsonl", lines(&new));
                let before = generation(&index);
                let mut job = millrace(args!["update", "--index", index, "-w", "1", input]);
                let mut child = job.spawn();
                std::thread::sleep(Duration::from_millis(random.below(100) as u64));
                _ = child.kill();
                child.wait().unwrap();
                if generation(&index) != before {
                    model = updated(&model, &new);
                }
            }
            _ => {
                let new = (0..1 + random.below(5)).map(|_| document(&mut random, 400)).collect();
                let mut update = change(&new);
                update.keep_point = random.below(10) == 0;
                let after = updated(&model, &new);
                let told = update.update().unwrap();
                assert_eq!(told.documents, after.len() as u64);
                assert_eq!(told.added, (after.len() - model.len()) as u64);
                model = after;
            }
        }
        models.insert(generation(&index), model.clone());
        reader.refresh().unwrap();
        let fresh = Index::open(&index).unwrap();
        for query in &queries {
            assert_eq!(reader.search(query, 20).unwrap(), fresh.search(query, 20).unwrap());
        }
        if (step + 1) % 20 == 0 || step + 1 == count {
            assert_as_built(&index, &model, &queries, &format!("step {step} of seed {seed}"));
            println!("seed {seed}: {} of {count} steps, {:.0?}", step + 1, began.elapsed());
        }
    }
}

#[test]
fn oracle_random_steps() {
    steps(100, 7);
}

#[test]
#[ignore = "takes minutes; run by `make campaign`"]
fn campaign_ten_thousand_random_steps() {
    (0..20).for_each(|seed| steps(500, 100 + seed));
}

#[test]
fn the_jobs_tell_what_they_did() {
    let scratch = Scratch::new();
    let index = scratch.path("index");
    let document = |name: &str, text: &str| (name.to_string(), text.to_string());
    let old = vec![document("a", "water mill"), document("b", "old race"), document("c", "stone")];
    build(&index, args![scratch.write("a.jsonl", lines(&old))]);
    let job = |job: &str, more: &[&str]| {
        let mut words = vec![job, "--index", index.to_str().unwrap()];
        words.extend(more);
        millrace(words)
    };
    let new = [
        &lines(&[document("b", "new race"), document("d", "x"), document("d", "mill")])[..],
        b"{\"text\": \"nameless\"}\nno JSON\n",
    ];
    let new = scratch.write("new.jsonl", new.concat());
    let said = "1 document added, 1 document replaced, 1 document left out, since a later one has \
                the name, 2 records skipped";
    let path = new.to_str().unwrap();
    job("update", &["--dry-run", path]).ok().says(said).says("nothing was published");
    assert_eq!(generation(&index), 1);
    job("update", &[path])
        .ok()
        .says(said)
        .says("generation 2 has 4 documents")
        .says("has to have a name");
    let model =
        vec![old[0].clone(), old[2].clone(), document("b", "new race"), document("d", "mill")];
    assert_as_built(&index, &model, &["mill race".to_string()], "updated");
    job("delete", &["c", "zzz"]).ok().says("1 document deleted, 1 document not there");
    job("delete", &["zzz"]).ok().says("1 document not there; nothing was published");
    job("delete", &["a", "b"])
        .fails(1)
        .says("1 of 3 documents would be left")
        .says("--allow-shrink");
    job("delete", &["--allow-shrink", "-"]).stdin("a\r\nb\n").ok().says("has 1 document");
    assert_as_built(&index, &vec![document("d", "mill")], &["mill".to_string()], "deleted");
    // One goes back to the build, and not to a commit.
    job("rollback", &[]).ok().says("generation 1 is live");
    let other = scratch.path("other");
    millrace(args!["update", "--index", other, new]).fails(1).says("other");
    assert!(!other.exists());
}

#[test]
fn an_index_that_a_job_file_keeps_or_another_job_holds_is_refused() {
    let scratch = Scratch::new();
    let index = scratch.path("index");
    scratch.write("docs/a.jsonl", b"{\"id\": \"a\", \"text\": \"mill\"}\n");
    let job = scratch.write("job.toml", "index = \"index\"\n[[input]]\npaths = [\"docs/*\"]\n");
    millrace(args!["rebuild", job, "--once"]).ok();
    let input = scratch.write("b.jsonl", b"{\"id\": \"b\", \"text\": \"race\"}\n");
    let update = || millrace(args!["update", "--index", index, input]);
    update().fails(1).says("a job file keeps this index");
    std::fs::remove_dir_all(index.join("rebuild")).unwrap();
    let lock = std::fs::File::open(index.join("LOCK")).unwrap();
    lock.lock().unwrap();
    std::fs::write(index.join("LOCK"), "4711\n").unwrap();
    update().fails(1).says("another job (process 4711) holds this index");
    let mut waiting = update().arg("--wait");
    let mut child = waiting.spawn();
    std::thread::sleep(Duration::from_millis(300));
    assert!(child.try_wait().unwrap().is_none(), "it waits");
    drop(lock);
    assert_eq!(wait(&mut child, "update"), Some(0));
    assert_eq!(info(&index)["documents"], 2);
}

/// Who commits while another commit is under way waits, and one commit takes what all have noted.
#[test]
fn threads_share_a_writer_and_commits_are_joined() {
    let scratch = Scratch::new();
    let index = scratch.path("index");
    let document = |n: u32| (format!("d{n}"), format!("mill number{n}"));
    let mut model: Model = (0..4).map(document).collect();
    build(&index, args![scratch.write("a.jsonl", lines(&model))]);
    let open = Index::open(&index).unwrap();
    let mut writer = Writer::new(&index);
    (writer.workers, writer.memory) = (1, 64 << 20);
    let note = |(name, text): (String, String)| writer.update(name, text);
    let lock = std::fs::File::open(index.join("LOCK")).unwrap();
    lock.lock().unwrap();
    let commit = || {
        let told = writer.commit(false).unwrap();
        open.move_to(writer.generation().unwrap()).unwrap();
        told
    };
    note(document(10));
    let (first, others) = std::thread::scope(|scope| {
        let first = scope.spawn(commit);
        std::thread::sleep(Duration::from_millis(300));
        assert_eq!(writer.pending(), 0, "the first commit has taken what there was");
        let others: Vec<_> = (11..18)
            .map(|n| {
                note(document(n));
                scope.spawn(commit)
            })
            .collect();
        std::thread::sleep(Duration::from_millis(300));
        drop(lock);
        let others: Vec<_> = others.into_iter().map(|other| other.join().unwrap()).collect();
        (first.join().unwrap(), others)
    });
    assert_eq!((first.added, first.generation), (1, Some(2)));
    for told in others {
        assert_eq!((told.added, told.documents, told.generation), (7, 12, Some(3)));
    }
    assert_eq!(open.search("number17", 1).unwrap()[0].name, "d17");
    assert!(!open.refresh().unwrap(), "it has moved already");
    model.extend((10..18).map(document));
    // What a commit that failed had taken comes before what was noted since.
    for (name, _) in &model {
        writer.delete(name.clone());
    }
    let refused = writer.commit(false).unwrap_err();
    assert!(refused.to_string().contains("0 of 12 documents"), "{refused}");
    assert_eq!(writer.pending(), 12);
    model[5..].iter().cloned().for_each(note);
    let told = writer.commit(true).unwrap();
    assert_eq!((told.deleted, told.replaced, told.documents), (12, 7, 7));
    model.drain(..5);
    assert_as_built(&index, &model, &["mill number12".to_string()], "joined");
    assert_eq!(writer.commit(false).unwrap().generation, None);
}

/// Names and texts are in the fields that the index was built with, unless others are given.
#[test]
fn files_are_read_as_the_index_was() {
    let scratch = Scratch::new();
    let index = scratch.path("index");
    let csv = |name: &str, text: &str| format!("id,sku,blurb,text\nno,{name},{text},other\n");
    let input = scratch.write("a.csv", csv("a", "lamp"));
    let fields = ["--id-field", "sku", "--text-field", "blurb", "--encoding", "latin1"];
    millrace(args!["build", "--index", &index, input]).args(fields).ok();
    let add = |name: &str, text: &[u8], more: &[&str]| {
        let file = scratch.write("new.csv", text);
        let update = millrace(args!["update", "--index", &index, file]);
        update.args(more).ok().says("1 document added");
        millrace(args!["show", "--index", &index, name]).ok();
    };
    add("b", b"id,sku,blurb,text\nno,b,caf\xe9,other\n", &[]);
    add("c", csv("c", "chair").as_bytes(), &["--text-field", "text"]);
    for (query, found) in [("caf\u{e9}", "b"), ("other", "c"), ("chair", ""), ("lamp", "a")] {
        let query = args!["query", "--index", &index, "--format", "tsv", "--query", query];
        let answer = millrace(query).ok();
        let named = |row: &str| row.split('\t').any(|field| field == found);
        assert_eq!(answer.text().lines().filter(|row| named(row)).count(), found.len());
        assert_eq!(answer.text().is_empty(), found.is_empty(), "{answer:?}");
    }
}

/// A rebuild leaves what came by call, and changes what came from its files.
#[test]
fn an_index_of_a_writable_job_file_takes_updates_beside_rebuilds() {
    let scratch = Scratch::new();
    let index = scratch.path("index");
    let document = |name: &str, text: &str| (name.to_string(), text.to_string());
    let queries = ["mill race".to_string(), "stone wheel".to_string()];
    let source = |documents: &Model| scratch.write("docs/a.jsonl", lines(documents));
    let old = vec![document("a", "mill"), document("b", "race")];
    source(&old);
    let text = "index = \"index\"\nwritable = true\n[[input]]\npaths = [\"docs/*\"]\n";
    let job = scratch.write("job.toml", format!("{text}[guard]\nmin_documents = \"0\"\n"));
    let rebuild = |job: &Path| millrace(args!["rebuild", job, "--once"]);
    rebuild(&job).ok();
    let (c, a) = (document("c", "stone"), document("a", "new mill"));
    let new = scratch.write("new.jsonl", lines(&[c.clone(), a.clone()]));
    millrace(args!["update", "--index", index, new]).ok().says("1 document replaced");
    millrace(args!["delete", "--index", index, "b"]).ok();
    rebuild(&job).ok();
    let model = vec![c.clone(), a.clone()];
    assert_as_built(&index, &model, &queries, "no source has changed");
    // The file is read again: what was deleted of it comes back, and what was replaced does not.
    let (b, d) = (old[1].clone(), document("d", "wheel"));
    source(&vec![document("a", "other mill"), b.clone(), d.clone()]);
    rebuild(&job).ok();
    assert_as_built(&index, &vec![c.clone(), a.clone(), b, d], &queries, "a source has changed");
    std::fs::remove_file(scratch.path("docs/a.jsonl")).unwrap();
    let e = document("e", "stone mill");
    scratch.write("docs/e.jsonl", lines(std::slice::from_ref(&e)));
    rebuild(&job).ok();
    assert_as_built(&index, &vec![c.clone(), a, e.clone()], &queries, "a source is gone");
    millrace(args!["delete", "--index", index, "a"]).ok();
    assert_as_built(&index, &vec![c, e.clone()], &queries, "deleted");
    // What came by call is in no source.
    let other = format!("{text}[build]\nstemmer = \"none\"\n[guard]\nmin_documents = \"0\"\n");
    let other = scratch.write("other.toml", other);
    rebuild(&other).fails(1).says("1 documents came by call").says("the stemmer is another one");
    millrace(args!["rebuild", other, "--from-nothing"]).ok();
    assert_eq!(info(&index)["documents"], 1);
    let closed = text.replace("writable = true\n", "");
    let closed = scratch.write("closed.toml", format!("{closed}[build]\nstemmer = \"none\"\n"));
    rebuild(&closed).ok();
    millrace(args!["update", "--index", index, new]).fails(1).says("writable = true");
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
}

/// Behind `merge --now` no file of the index has a deleted document's name or terms.
#[test]
fn deleted_documents_are_gone_for_good_by_a_merge_now() {
    let scratch = Scratch::new();
    let index = scratch.path("index");
    // Names that begin with nothing alike lie in their file as they are.
    let document = |n: char| (format!("{n}-name."), format!("mill {}", String::from_iter([n; 9])));
    let input = scratch.write("a.jsonl", lines(&('a'..='z').map(document).collect::<Vec<_>>()));
    build(&index, args![input]);
    millrace(args!["delete", "--index", index, "--keep-point", "c-name."]).ok();
    millrace(args!["delete", "--index", index, "d-name."]).ok();
    let bytes = || {
        let folders = std::iter::once(index.clone()).chain(entries(&index));
        let files = folders.filter(|path| path.is_dir()).flat_map(|folder| entries(&folder));
        files.filter(|path| path.is_file()).flat_map(|path| std::fs::read(path).unwrap()).collect()
    };
    let has = |text: &str| {
        let bytes: Vec<u8> = bytes();
        bytes.windows(text.len()).any(|window| window == text.as_bytes())
    };
    let merge = || millrace(args!["merge", "--index", index, "--now"]);
    // Who has an older generation open keeps it on the disk.
    let open = Index::open(&index).unwrap();
    merge().fails(1).says("generation 3 is open in another program");
    drop(open);
    assert!(["c-name.", "d-name.", "f-name."].map(has).iter().all(|has| *has));
    merge().ok().says("no older generation is left");
    assert!(!["c-name.", "ccccc", "d-name.", "ddddd"].map(has).contains(&true));
    assert!(has("f-name.") && has("fffff"));
    millrace(args!["rollback", "--index", index]).fails(1).says("is kept");
    assert_sound(&index, "merged");
    // Without a generation to go back to, and with one run, there is nothing left to do.
    millrace(args!["delete", "--index", index, "f-name."]).ok();
    merge().ok().says("merged into one");
    assert!(!has("f-name."));
}

/// What an update cannot do it refuses by name, and the index stays.
#[test]
fn indexes_that_cannot_be_updated_are_refused() {
    let scratch = Scratch::new();
    let document = |n: u32| (format!("http://a.org/{n}"), format!("mill number{n}"));
    let input = scratch.write("a.jsonl", lines(&(0..30).map(document).collect::<Vec<_>>()));
    let new = scratch.write("b.jsonl", lines(&[document(90)]));
    let global = scratch.path("global");
    build(&global, args!["--order", "global", input]);
    millrace(args!["update", "--index", global, new]).fails(1).says("are in global order");
    // Another order is given up, and PageRanks go with the names.
    let ranks: String = (0..30).map(|n| format!("http://a.org/{n}\t0.{n:02}\n")).collect();
    let ranks = scratch.write("ranks.tsv", ranks);
    let ordered = scratch.path("ordered");
    build(&ordered, args!["--order", "url", "--pagerank", ranks, input]);
    millrace(args!["update", "--index", ordered, new]).ok().says("1 new documents have PageRank 0");
    assert_sound(&ordered, "updated");
    assert!(info(&ordered)["order"].is_null());
    let vectors = scratch.path("vectors");
    let vector = |n: u32| format!("{{\"id\": \"v{n}\", \"vector\": {{\"mill\": {}}}}}\n", n + 1);
    let input = scratch.write("v.jsonl", (0..20).map(vector).collect::<String>());
    build(&vectors, args!["--format", "vectors", "--factor", "1", input]);
    let more = scratch.write("w.jsonl", vector(25));
    millrace(args!["update", "--index", vectors, more]).ok().says("1 document added");
    millrace(args!["update", "--index", vectors, "--format", "jsonl", new])
        .fails(2)
        .says("vectors");
    millrace(args!["update", "--index", global, "--format", "vectors", more]).fails(1);
}

/// A block of names or of who has one is verified before it is used, in packs too; others are not.
#[test]
fn a_damaged_block_of_names_ends_a_deletion() {
    let scratch = Scratch::new();
    let index = scratch.path("index");
    // They begin with nothing alike.
    let document = |n: u32| (format!("{}d{n:08}", n % 10), format!("mill {n}"));
    let input = scratch.write("a.jsonl", lines(&(0..9000).map(document).collect::<Vec<_>>()));
    build(&index, args![input]);
    let new = scratch.write("b.jsonl", lines(&[document(9001)]));
    millrace(args!["update", "--index", index, new]).ok();
    let run = |name: &str| index.join("runs").join(name);
    let pack = std::fs::read(run("000001.packed")).unwrap();
    let at = pack.windows(10).position(|bytes| bytes == b"1d00009001").unwrap();
    let names = 64;
    let cases = [
        ("000000.names", names, "7d00000007", "000000.names: byte 64: expected 65472 bytes"),
        ("000001.packed", at, "1d00009001", "000001.packed/names: byte 64: expected 16 bytes"),
    ];
    for (file, at, name, expected) in cases {
        let good = std::fs::read(run(file)).unwrap();
        let mut bad = good.clone();
        bad[at] ^= 1;
        std::fs::write(run(file), bad).unwrap();
        let delete = |name: &str| millrace(args!["delete", "--index", index, "--dry-run", name]);
        delete(name).fails(1).says(expected);
        // The last one of the first run is in another block.
        delete("9d00008999").ok();
        std::fs::write(run(file), good).unwrap();
        delete(name).ok();
    }
}

#[test]
fn a_build_says_that_it_leaves_out_what_came_by_call() {
    let scratch = Scratch::new();
    let index = scratch.path("index");
    let input = scratch.write("a.jsonl", lines(&[("a".into(), "mill".into())]));
    let new = scratch.write("b.jsonl", lines(&[("b".into(), "race".into())]));
    let says = || {
        let built = millrace(args!["build", "--index", index, "-w", "1", input]).ok();
        built.stderr.contains("what came or went by call since the last build is left out")
    };
    assert!(!says());
    millrace(args!["update", "--index", index, new]).ok();
    assert!(says());
    assert!(!says());
}
