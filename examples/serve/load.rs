//! Puts a server under load, and tells how long its answers take.
//!
//! ```text
//! cargo run --release --example load -- ADDRESS QUERIES CONNECTIONS RATE SECONDS [BATCH]
//! ```
//!
//! Each connection is a thread that sends a request when its turn comes: RATE requests a second in
//! all, or as fast as it can if that is 0. Times count from when a request was due, so that a
//! server that is behind does not hide it. With a BATCH, requests are lists of this many queries.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

fn requests(file: &str, host: &str, batch: usize) -> std::io::Result<Vec<Vec<u8>>> {
    let text = std::fs::read_to_string(file)?;
    let queries: Vec<&str> =
        text.lines().map(|line| line.split_once('\t').map_or(line, |(_, text)| text)).collect();
    let one = |queries: &[&str]| {
        let mut request = String::new();
        if batch == 0 {
            let encoded: String = queries[0]
                .bytes()
                .map(|byte| match byte {
                    b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => char::from(byte).to_string(),
                    byte => format!("%{byte:02X}"),
                })
                .collect();
            _ = write!(request, "GET /v1/search?q={encoded} HTTP/1.1\r\nHost: {host}\r\n\r\n");
        } else {
            let objects: Vec<String> =
                queries.iter().map(|text| format!("{{\"query\":{text:?}}}")).collect();
            let body = format!("[{}]", objects.join(","));
            let length = body.len();
            _ = write!(
                request,
                "POST /v1/search HTTP/1.1\r\nHost: {host}\r\nContent-Length: {length}\r\n\r\n{body}"
            );
        }
        request.into_bytes()
    };
    Ok(queries.chunks(batch.max(1)).map(one).collect())
}

/// Reads an answer; returns its status.
fn answer(stream: &mut BufReader<TcpStream>, body: &mut Vec<u8>) -> std::io::Result<u16> {
    let (mut line, mut status, mut length) = (String::new(), 0, 0);
    loop {
        line.clear();
        stream.read_line(&mut line)?;
        let lower = line.to_ascii_lowercase();
        if let Some(value) = lower.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or(0);
        } else if let Some(rest) = lower.strip_prefix("http/1.1 ") {
            status = rest.split(' ').next().and_then(|code| code.parse().ok()).unwrap_or(0);
        } else if line.trim().is_empty() {
            break;
        }
    }
    body.resize(length, 0);
    stream.read_exact(body)?;
    Ok(status)
}

fn main() -> std::io::Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [host, file, rest @ ..] = &args[..] else { panic!("give ADDRESS and QUERIES") };
    let number = |at: usize, usual: f64| {
        rest.get(at).map_or(usual, |text| text.parse().expect("it is a number"))
    };
    let (connections, rate, seconds) = (number(0, 1.0) as usize, number(1, 0.0), number(2, 5.0));
    let batch = number(3, 0.0) as usize;
    let requests = requests(file, host, batch)?;
    let began = Instant::now();
    let every = (rate > 0.0).then(|| Duration::from_secs_f64(connections as f64 / rate));
    let ask = |thread: usize| -> std::io::Result<(Vec<f64>, usize)> {
        let mut stream = BufReader::with_capacity(1 << 16, TcpStream::connect(host)?);
        stream.get_ref().set_nodelay(true)?;
        let (mut times, mut refused, mut body) = (Vec::new(), 0, Vec::new());
        let mut due = began;
        if let Some(every) = every {
            due += every.mul_f64(thread as f64 / connections as f64);
        }
        for request in requests.iter().cycle().skip(thread * 97) {
            if began.elapsed().as_secs_f64() > seconds {
                break;
            }
            match every {
                Some(every) => {
                    std::thread::sleep(due.saturating_duration_since(Instant::now()));
                    due += every;
                }
                None => due = Instant::now(),
            }
            let from = every.map_or(due, |every| due - every);
            stream.get_mut().write_all(request)?;
            match answer(&mut stream, &mut body)? {
                200 => times.push(from.elapsed().as_secs_f64() * 1e6),
                _ => refused += 1,
            }
        }
        Ok((times, refused))
    };
    let mut times = Vec::new();
    let mut refused = 0;
    std::thread::scope(|scope| {
        let threads: Vec<_> =
            (0..connections).map(|thread| scope.spawn(move || ask(thread))).collect();
        for thread in threads {
            match thread.join().expect("no thread panics") {
                Ok((own, not)) => {
                    times.extend(own);
                    refused += not;
                }
                Err(error) => eprintln!("{error}"),
            }
        }
    });
    times.sort_by(f64::total_cmp);
    let took = began.elapsed().as_secs_f64();
    let at = |share: f64| times.get((times.len() as f64 * share) as usize).copied().unwrap_or(0.0);
    println!(
        "{} requests, {refused} refused, {:.0} queries/s, p50 {:.0} us, p99 {:.0} us, most {:.0} us",
        times.len(),
        (times.len() * batch.max(1)) as f64 / took,
        at(0.5),
        at(0.99),
        times.last().copied().unwrap_or(0.0)
    );
    Ok(())
}
