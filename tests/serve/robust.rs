//! Clients that break off, wait, or send what is no request; a damaged index; the end.

use super::{index_of, names, records, search};
use crate::support::http::{Serving, answer_of};
use crate::support::sound::{ends_soon, signal};
use crate::support::{Random, Scratch, generation, run_path};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

/// Parts of which random requests are made.
const PARTS: [&str; 24] = [
    "GET ",
    "POST ",
    "DELETE ",
    "/v1/search",
    "/v1/documents",
    "/v1/explain",
    "/v1/info",
    "?",
    "q=",
    "mill",
    "&k=",
    "&filter=",
    "%",
    "%00",
    "%zz",
    " HTTP/1.1\r\n",
    "Host: localhost\r\n",
    "\r\n",
    "{\"query\":",
    "[",
    "\"",
    "}",
    "Content-Length: 5\r\n",
    "\u{fffd}",
];

#[test]
fn random_requests_break_nothing() {
    let scratch = Scratch::new();
    let index = index_of(&scratch, &records(1, 50));
    let server = Serving::new(&index, &["-w", "1", "--writable", "--timeout", "5"]);
    let mut random = Random::new(7);
    let requests =
        std::env::var("MILLRACE_REQUESTS").ok().and_then(|n| n.parse().ok()).unwrap_or(600);
    let mut good = 0;
    for number in 0..requests {
        let mut bytes = Vec::new();
        if random.below(3) > 0 {
            bytes.extend_from_slice(b"GET /v1/search?q=mill");
        }
        for _ in 0..random.below(9) {
            bytes.extend_from_slice(random.pick(&PARTS).as_bytes());
        }
        if random.below(2) == 0 {
            bytes.extend_from_slice(b" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        }
        let mut stream = server.connect();
        _ = stream.write_all(&bytes);
        // Who closes its end after a whole request does not want the answer.
        if !bytes.ends_with(b"\r\n\r\n") {
            _ = stream.shutdown(Shutdown::Write);
        }
        let mut all = Vec::new();
        if stream.read_to_end(&mut all).is_ok() && !all.is_empty() {
            let answer = answer_of(&all);
            assert!(answer.status < 500, "{:?}: {answer:?}", String::from_utf8_lossy(&bytes));
            good += usize::from(answer.status == 200);
        }
        if number % 100 == 0 {
            assert!(!names(&search(&server, &[("q", "mill")]).expect(200).json()).is_empty());
        }
    }
    assert!(good > requests / 200, "{good}");
    assert!(!names(&search(&server, &[("q", "mill")]).expect(200).json()).is_empty());
}

#[test]
fn slow_cut_and_idle_connections_hold_nobody_up() {
    let scratch = Scratch::new();
    let index = index_of(&scratch, &records(2, 50));
    let server = Serving::new(
        &index,
        &["-w", "1", "--writable", "--timeout", "4", "--max-connections", "400"],
    );
    let open = |bytes: &[u8]| -> TcpStream {
        let mut stream = server.connect();
        stream.write_all(bytes).unwrap();
        stream
    };
    let idle: Vec<TcpStream> = (0..300).map(|_| server.connect()).collect();
    let halves: Vec<TcpStream> = (0..20).map(|_| open(b"GET /v1/sea")).collect();
    let body =
        b"POST /v1/search HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{\"query\"";
    let mut bodies: Vec<TcpStream> = (0..20).map(|_| open(body)).collect();
    for _ in 0..50 {
        drop(open(b"GET /v1/search?q=mill&k=1000 HTTP/1.1\r\nHost: localhost\r\n\r\n"));
        search(&server, &[("q", "mill")]).expect(200);
    }
    // A body that does not come ends the request, with an answer.
    let mut all = Vec::new();
    let mut last = bodies.pop().unwrap();
    let mut part = [0; 4096];
    while !all.ends_with(b"}") {
        let read = last.read(&mut part).unwrap();
        assert!(read > 0, "{:?}", String::from_utf8_lossy(&all));
        all.extend_from_slice(&part[..read]);
    }
    assert_eq!(answer_of(&all).status, 503);
    drop((halves, bodies));
    // More connections than are allowed are closed at once.
    let more: Vec<TcpStream> = (0..150).map(|_| server.connect()).collect();
    let closed = more.iter().filter(|stream| {
        stream.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
        matches!((&**stream).read(&mut [0; 1]), Ok(0))
    });
    assert!(closed.count() > 10);
    drop((idle, more));
    std::thread::sleep(Duration::from_millis(200));
    search(&server, &[("q", "mill")]).expect(200);
}

#[test]
fn a_damaged_list_fails_its_queries_alone() {
    let scratch = Scratch::new();
    let index = index_of(&scratch, &records(3, 3000));
    let postings = run_path(&index, 0, "postings");
    let mut bytes = std::fs::read(&postings).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x10;
    std::fs::write(&postings, bytes).unwrap();
    let server = Serving::new(&index, &["-w", "2"]);
    let mut statuses = Vec::new();
    for word in ["water", "mill", "wheel", "river", "stone", "tall", "old", "rare"] {
        let answer = search(&server, &[("q", word)]);
        if answer.status == 500 {
            let error = answer.json()["error"].as_str().unwrap().to_string();
            let name = postings.file_name().unwrap().to_str().unwrap();
            assert!(error.contains(name), "{error}");
        }
        statuses.push(answer.status);
    }
    assert!(statuses.contains(&500), "{statuses:?} in {}", generation(&index).display());
    statuses.retain(|&status| status != 500);
    assert!(statuses.iter().all(|&status| status == 200), "{statuses:?}");
    server.get("/live").expect(200);
}

/// Columns that are damaged while they are open fail what asks for them, or answer otherwise.
#[test]
fn a_damaged_column_fails_its_queries_alone() {
    let scratch = Scratch::new();
    let index = index_of(&scratch, &records(5, 3000));
    let server = Serving::new(&index, &["-w", "1"]);
    let columns = run_path(&index, 0, "columns");
    let length = columns.metadata().unwrap().len() as usize;
    // Written over in place: the server has it mapped.
    let file = std::fs::File::options().write(true).open(&columns).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, &vec![0xff; length - 64], 64).unwrap();
    let mut failed = 0;
    for more in [
        ("filter", "year > 1990"),
        ("filter", "tags = \"a\""),
        ("sort", "year"),
        ("facets", "tags"),
        ("return", "tags"),
    ] {
        let answer = search(&server, &[("q", "mill"), more]);
        if answer.status != 200 {
            let error = answer.expect(500).json()["error"].as_str().unwrap().to_string();
            assert!(error.contains(columns.file_name().unwrap().to_str().unwrap()), "{error}");
            failed += 1;
        }
        search(&server, &[("q", "mill")]).expect(200);
    }
    assert!(failed > 0);
}

/// Methods and paths that clients make up are counted together.
#[test]
fn made_up_requests_take_no_memory() {
    let scratch = Scratch::new();
    let index = index_of(&scratch, &records(6, 10));
    let server = Serving::new(&index, &["-w", "1"]);
    for number in 0..50 {
        server.ask(&format!("M{number}"), &format!("/made/{number}"), &[], b"").expect(404);
    }
    let metrics = String::from_utf8(server.get("/metrics").expect(200).body).unwrap();
    let rows = metrics.lines().filter(|line| line.starts_with("millrace_requests_total"));
    let rows: Vec<&str> = rows.collect();
    assert_eq!(
        rows,
        ["millrace_requests_total{method=\"other\",path=\"other\",status=\"404\"} 50"]
    );
}

#[test]
fn the_end_waits_for_what_is_under_way() {
    let scratch = Scratch::new();
    let index = index_of(&scratch, &records(4, 50));
    for name in ["TERM", "INT"] {
        let mut server = Serving::new(&index, &["-w", "1"]);
        // A request whose body is still coming.
        let mut slow = server.connect();
        let body = "{\"query\": \"mill\"}";
        let head = format!(
            "POST /v1/search HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        slow.write_all(head.as_bytes()).unwrap();
        slow.write_all(&body.as_bytes()[..5]).unwrap();
        std::thread::sleep(Duration::from_millis(100));
        signal(&server.child, name);
        std::thread::sleep(Duration::from_millis(100));
        slow.write_all(&body.as_bytes()[5..]).unwrap();
        let mut all = Vec::new();
        slow.read_to_end(&mut all).unwrap();
        assert_eq!(answer_of(&all).status, 200);
        assert_eq!(ends_soon(&mut server.child, name), 0);
    }
}
