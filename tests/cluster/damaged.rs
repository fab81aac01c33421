//! A network that damages, cuts, repeats or forges what processes tell each other ends the job, or
//! changes no answer.

use super::meeting::call;
use super::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// A process that is silent for so long is taken for lost (docs/inside/cluster.md).
const SILENCE: Duration = Duration::from_millis(2500);

/// What a proxy does to the bytes of one direction of one connection.
#[derive(Clone, Copy, Debug)]
enum Harm {
    Nothing,
    /// Flips this bit of the byte at this place.
    Flip(u8),
    /// Leaves the byte out.
    Drop,
    /// Sends the byte twice.
    Double,
    /// Closes the connection there.
    Cut,
}

/// Stands for every connection.
const ANY: usize = usize::MAX;

/// A proxy before process 0 that harms one place. Connections are counted as they come.
struct Proxy {
    /// Where process 1 finds it.
    address: String,
    /// Bytes that each connection has carried, there and back.
    carried: Arc<[[AtomicUsize; 2]; 2]>,
}

impl Proxy {
    fn start(target: &str, harm: Harm, (connection, back, at): (usize, bool, usize)) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let carried: Arc<[[AtomicUsize; 2]; 2]> = Arc::default();
        let counts = carried.clone();
        let target = target.to_string();
        thread::spawn(move || {
            let mut number = 0;
            for caller in listener.incoming().flatten() {
                // Process 0 may not listen yet; who called hears nothing and calls again.
                let Ok(answerer) = TcpStream::connect(&target) else { continue };
                let ways = [
                    (caller.try_clone().unwrap(), answerer.try_clone().unwrap()),
                    (answerer, caller),
                ];
                for (way, (from, to)) in ways.into_iter().enumerate() {
                    let here = connection == ANY || number == connection;
                    let harmed = here && back == (way == 1);
                    let harm = if harmed { harm } else { Harm::Nothing };
                    let counts = counts.clone();
                    let number = number.min(1);
                    thread::spawn(move || carry(from, to, (harm, at), &counts[number][way]));
                }
                number += 1;
            }
        });
        Self { address, carried }
    }
}

fn carry(mut from: TcpStream, mut to: TcpStream, (harm, at): (Harm, usize), count: &AtomicUsize) {
    let mut block = vec![0; 1 << 16];
    let mut before = 0;
    while let Ok(read @ 1..) = from.read(&mut block) {
        let mut bytes = block[..read].to_vec();
        if let Some(here) = at.checked_sub(before).filter(|&here| here < read) {
            match harm {
                Harm::Nothing => {}
                Harm::Flip(bit) => bytes[here] ^= 1 << bit,
                Harm::Drop => drop(bytes.remove(here)),
                Harm::Double => bytes.insert(here, bytes[here]),
                Harm::Cut => {
                    _ = to.shutdown(std::net::Shutdown::Both);
                    _ = from.shutdown(std::net::Shutdown::Both);
                    return;
                }
            }
        }
        before += read;
        count.store(before, Ordering::Relaxed);
        if to.write_all(&bytes).is_err() {
            break;
        }
    }
    _ = to.shutdown(std::net::Shutdown::Write);
}

/// Two processes of a query job, with a proxy between them.
struct Through {
    scratch: Scratch,
    ask: Vec<OsString>,
}

impl Through {
    fn new(more: &[OsString]) -> Self {
        let scratch = Scratch::new();
        let (input, queries) = collection(&scratch);
        let index = scratch.path("index");
        together(&scratch, 2, &args!["build", "--quiet", "--index", index, "-w", "1", input]);
        let mut ask =
            args!["query", "--quiet", "--index", index, "-w", "2", "--batch", "7"].to_vec();
        ask.extend_from_slice(more);
        ask.push(queries.into());
        Self { scratch, ask }
    }

    /// Runs the job; returns what both left, and how much each connection carried.
    fn run(&self, harm: Harm, place: (usize, bool, usize)) -> (Vec<Outcome>, [[usize; 2]; 2]) {
        let hosts = Hosts::new(&self.scratch, 2);
        let proxy = Proxy::start(&hosts.addresses[0], harm, place);
        let addresses = vec![proxy.address.clone(), hosts.addresses[1].clone()];
        let path = self.scratch.write("behind", addresses.join("\n"));
        let behind = Hosts { path, addresses };
        let jobs = [hosts.job_waiting("3", 0, &self.ask), behind.job_waiting("3", 1, &self.ask)];
        let outcomes = Running::start(jobs).end();
        let carried =
            proxy.carried.each_ref().map(|ways| ways.each_ref().map(|n| n.load(Ordering::Relaxed)));
        (outcomes, carried)
    }
}

#[test]
fn nothing_that_was_harmed_on_the_way_gives_another_answer() {
    let through = Through::new(&[]);
    let (outcomes, mut carried) = through.run(Harm::Nothing, (9, false, 0));
    let right = &outcomes[0];
    assert_eq!((right.status, outcomes[1].status), (Some(0), Some(0)), "{outcomes:?}");
    assert!(right.stdout.len() > 1000);
    // How often progress is sent depends on what else the machine does: what every run carries is
    // harmed.
    for _ in 0..3 {
        let (_, again) = through.run(Harm::Nothing, (9, false, 0));
        for (least, again) in carried.as_flattened_mut().iter_mut().zip(again.as_flattened()) {
            *least = *again.min(least);
        }
    }
    let mut random = Random::new(7);
    let mut refused = 0;
    let mut failed = 0;
    for run in 0..32 {
        let harm = match run % 4 {
            0 | 1 => Harm::Flip(random.below(8) as u8),
            2 => Harm::Drop,
            _ => Harm::Double,
        };
        let connection = random.below(2);
        let back = random.below(2) == 1;
        let length = carried[connection][usize::from(back)];
        // Greetings are harmed too, but not every time.
        let from = if run % 8 == 0 { 0 } else { length / 4 };
        let place = (connection, back, from + random.below(length - from));
        let start = Instant::now();
        let (outcomes, _) = through.run(harm, place);
        let what = format!("{harm:?} at {place:?} of {carried:?}: {outcomes:?}");
        // A message that stops is waited for; without an end, for ever.
        assert!(start.elapsed() < SILENCE + SOON, "{:?} {what}", start.elapsed());
        if outcomes[0].status == Some(0) {
            assert!(outcomes[0].stdout == right.stdout, "another answer: {what}");
        } else {
            assert_eq!(outcomes[0].status, Some(1), "{what}");
            failed += 1;
            let told: String = outcomes.iter().map(|outcome| &*outcome.stderr).collect();
            assert!(!told.contains("report it") && !told.contains("panicked"), "{what}");
            refused += usize::from(told.contains("damaged"));
            // What was written before is right.
            assert!(right.stdout.starts_with(&outcomes[0].stdout), "{what}");
        }
    }
    assert!(failed >= 16 && refused >= 8, "{failed} failed, {refused} of them told of damage");
}

#[test]
fn a_connection_for_records_that_breaks_ends_the_job_at_once() {
    let through = Through::new(&[]);
    let (_, carried) = through.run(Harm::Nothing, (9, false, 0));
    for back in [false, true] {
        // This many bytes go over the line for records only.
        let way = usize::from(back);
        let at = carried[0][way].max(carried[1][way]) / 2;
        assert!(at > carried[0][way].min(carried[1][way]), "{carried:?}");
        let start = Instant::now();
        let (outcomes, _) = through.run(Harm::Cut, (ANY, back, at));
        assert!(start.elapsed() < Duration::from_secs(6), "{:?}", start.elapsed());
        let told: String = outcomes.iter().map(|outcome| &*outcome.stderr).collect();
        assert_eq!(outcomes[0].status, Some(1), "{told}");
        assert!(told.contains("on the connection for records"), "{told}");
        assert!(!told.contains("report it"), "{told}");
    }
}

#[test]
fn a_secret_lets_in_who_knows_it() {
    let scratch = Scratch::new();
    let (input, queries) = collection(&scratch);
    let secret = scratch.write("secret", "correct horse battery staple");
    let other = scratch.write("other", "correct horse battery stapler");
    let short = scratch.write("short", "horse");
    let index = scratch.path("index");
    let build = args!["build", "--quiet", "--index", index, "-w", "1", "--secret", secret, input];
    together(&scratch, 2, &build);
    let whole = scratch.path("whole");
    crate::support::build(&whole, args![input]);
    let expected = millrace(args!["query", "--index", whole, queries]).ok().stdout;
    let ask = args!["query", "--quiet", "--index", index, "-w", "2", queries];
    let with = |secret: &PathBuf| [&ask[..], &args!["--secret", secret]].concat();
    assert_eq!(together(&scratch, 2, &with(&secret)), expected);

    // If one of the two lacks it, or has another one: no answer, and the caller says why.
    for (first, second) in [
        (with(&secret), with(&other)),
        (with(&secret), ask.to_vec()),
        (ask.to_vec(), with(&secret)),
    ] {
        let hosts = Hosts::new(&scratch, 2);
        let jobs = [hosts.job_waiting("2", 0, &first), hosts.job_waiting("2", 1, &second)];
        let outcomes = Running::start(jobs).end();
        for outcome in &outcomes {
            assert_eq!((outcome.status, &*outcome.stdout), (Some(1), &b""[..]), "{outcomes:?}");
            assert!(outcome.stderr.contains("secret"), "{outcomes:?}");
        }
    }
    millrace(with(&short)).args(["-n", "2"]).fails(1).says("expected 16 bytes or more, found 5");
    millrace(with(&secret)).fails(2).says("--secret goes with two --processes");

    // A stranger who has heard a greeting and says it again takes no place.
    let hosts = Hosts::new(&scratch, 2);
    let listener = TcpListener::bind(&hosts.addresses[0]).unwrap();
    let ask = with(&secret);
    let second = Running::start([hosts.job(1, &ask)]);
    let mut heard = vec![0; 12];
    let mut line = accept(&listener);
    line.read_exact(&mut heard).unwrap();
    let length = u32::from_be_bytes(heard[8..12].try_into().unwrap()) as usize;
    heard.resize(12 + length + 2 + 48, 0);
    line.read_exact(&mut heard[12..]).unwrap();
    drop((line, listener));
    // Process 0 listens for as long as its second is not there.
    second.kill();
    let first = Running::start([hosts.job(0, &ask)]);
    let (_line, said) = call(&hosts.addresses[0], &heard);
    assert!(!said.is_empty(), "it is answered, and does not know what to say then");
    let second = Running::start([hosts.job(1, &ask)]);
    let outcome = first.end().remove(0).expect_status(0);
    assert_eq!(outcome.stdout, expected);
    second.end().remove(0).expect_status(0);
}
