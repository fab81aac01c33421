//! Who may ask: tokens, names of this server, and pages of others.

use super::{index_of, records};
use crate::support::http::{Serving, serve_job};
use crate::support::{Scratch, args, millrace};

const READ: &str = "read-read-read-read";
const WRITE: &str = "write-write-write-write";

#[test]
fn tokens_are_needed_where_they_are_set() {
    let scratch = Scratch::new();
    let index = index_of(&scratch, &records(1, 10));
    let [read, write] = [("read", READ), ("write", WRITE)]
        .map(|(name, token)| scratch.write(name, format!("{token}\n")).display().to_string());
    let options = ["-w", "1", "--writable", "--read-token", &read, "--write-token", &write];
    let server = Serving::new(&index, &options);
    let with = |method: &str, path: &str, token: &str| {
        let bearer = format!("Authorization: Bearer {token}");
        server.ask(method, path, &[&bearer], b"").status
    };
    for path in ["/v1/search?q=mill", "/v1/info", "/metrics", "/v1/documents?docid=1"] {
        let refused = server.get(path).expect(401);
        assert_eq!(refused.header("www-authenticate"), Some("Bearer"));
        assert_eq!(with("GET", path, "read-read-read-reax"), 401);
        assert_eq!((with("GET", path, READ), with("GET", path, WRITE)), (200, 200));
    }
    server.ask("GET", "/v1/info", &["Authorization: Basic cmVhZA=="], b"").expect(401);
    for path in ["/", "/page.js", "/page.css", "/live", "/ready"] {
        server.get(path).expect(200);
    }
    assert_eq!(with("DELETE", "/v1/documents/a", READ), 403);
    assert_eq!(with("DELETE", "/v1/documents/a", WRITE), 200);
    server.ask("DELETE", "/v1/documents/a", &[], b"").expect(401);
}

#[test]
fn other_addresses_need_tokens() {
    let scratch = Scratch::new();
    let index = index_of(&scratch, &records(2, 10));
    let token = scratch.write("token", READ).display().to_string();
    let serve =
        |more: &[&str]| millrace(args!["serve", "--index", &index, "-w", "1"]).args(more).fails(2);
    serve(&["--listen", "0.0.0.0:0"]).says("--read-token");
    serve(&["--listen", "0.0.0.0:0", "--read-token", &token, "--writable"]).says("--write-token");
    serve(&["--write-token", &token]).says("--writable");
    serve(&["--allow-origin", "*"]).says("https://example.org");
    let short = scratch.write("short", "x\n").display().to_string();
    serve(&["--read-token", &short]).says("16 characters");
    millrace(args!["serve", "--index", &index, "--read-token", scratch.path("none")])
        .fails(1)
        .says("none");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    for listen in [&*address, address.rsplit(':').next().unwrap()] {
        millrace(args!["serve", "--index", &index, "--listen", listen]).fails(1).says(&address);
    }
    millrace(args!["serve", "--index", scratch.path("nowhere")]).fails(1).says("nowhere");
}

#[test]
fn pages_of_other_sites_cannot_ask() {
    let scratch = Scratch::new();
    let index = index_of(&scratch, &records(3, 10));
    let options =
        ["-w", "1", "--allow-host", "search.example", "--allow-origin", "https://app.example"];
    let server = Serving::of(serve_job(&index, &options));
    let ask = |heads: &[&str]| server.ask("GET", "/v1/search?q=mill", heads, b"");
    let own = format!("Origin: http://{}", server.address);
    for host in ["Host: localhost:80", "Host: [::1]:8080", "Host: search.example", "Host: 10.0.0.7"]
    {
        ask(&[host]).expect(200);
    }
    for host in ["Host: evil.example", "Host: search.example.evil.example", "Host: localhost.evil"]
    {
        ask(&[host]).expect(421);
    }
    ask(&[&own]).expect(200);
    ask(&["Origin: https://evil.example"]).expect(403);
    ask(&["Origin: null"]).expect(403);
    let allowed = ask(&["Origin: https://app.example"]).expect(200);
    assert_eq!(allowed.header("access-control-allow-origin"), Some("https://app.example"));
    let asks = ["Origin: https://app.example", "Access-Control-Request-Method: POST"];
    let preflight = server.ask("OPTIONS", "/v1/search", &asks, b"").expect(200);
    assert!(preflight.header("access-control-allow-methods").unwrap().contains("POST"));
    let page = server.get("/").expect(200);
    let policy = page.header("content-security-policy").unwrap();
    assert!(policy.contains("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
    assert_eq!(page.header("x-content-type-options"), Some("nosniff"));
}
