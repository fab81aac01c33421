//! `millrace serve`.

use crate::Usage;
use crate::cli::args::{as_given, size, warn_of_readers};
use crate::cli::{report, signals};
use crate::papers;
use crate::query::follow::Renew;
use crate::query::serving::ServingArgs;
use crate::query::{Args as QueryArgs, QueryJob, totals};
use anyhow::Context;
use clap::builder::ArgPredicate;
use millrace::inside::cluster::Hosts;
use millrace::inside::query::AnswerForm;
use millrace::inside::serve::{
    GroupAddress, LiveSnapshot, RunningServer, ServeOptions, Server, Token,
};
use millrace::{Asker, Sink, Snapshot};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

#[derive(clap::Args, Clone, Debug)]
#[command(mut_args(unless_a_front))]
pub(crate) struct Args {
    #[command(flatten)]
    serving: ServingArgs,
    /// Be a front, without an index: send each query to one of these servers, each over a copy of
    /// the same index. Takes --listen, --read-token, --allow-host, --allow-origin, --max-body,
    /// --max-connections and --timeout. See docs/serve.md.
    #[arg(long, value_name = "URL,...", value_delimiter = ',', value_parser = group)]
    groups: Vec<GroupAddress>,
    /// Address and port, or a port of 127.0.0.1. With another address than one of this machine
    /// alone, --read-token is needed. Port 0 takes one that is free.
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = address)]
    #[arg(default_value = "127.0.0.1:8080")]
    listen: SocketAddr,
    /// Let requests add, replace and delete documents.
    #[arg(long)]
    writable: bool,
    /// File with the token that requests have to bring, on its first line.
    #[arg(long, value_name = "FILE")]
    read_token: Option<PathBuf>,
    /// File with the token that changes need; it may read too [default: as --read-token].
    #[arg(long, value_name = "FILE", requires = "writable")]
    write_token: Option<PathBuf>,
    /// Name by which requests may call this server, beside localhost and all IP addresses.
    #[arg(long, value_name = "NAME")]
    allow_host: Vec<String>,
    /// Origin whose pages may send requests, such as https://example.org.
    #[arg(long, value_name = "URL", value_parser = origin)]
    allow_origin: Vec<String>,
    /// Greatest k + offset of a query.
    #[arg(long, value_name = "N", default_value = "10000")]
    max_hits: usize,
    /// Greatest body of a request.
    #[arg(long, value_name = "SIZE", default_value = "16M", value_parser = size)]
    max_body: u64,
    /// Greatest number of open connections; further ones are closed.
    #[arg(long, value_name = "N", default_value = "16384")]
    max_connections: usize,
    /// Seconds after which a request is answered with status 503.
    #[arg(long, value_name = "SECONDS", default_value = "30")]
    timeout: u64,
    /// With --writable, greatest memory of a commit, such as 64M or 4G.
    #[arg(long, value_name = "SIZE", default_value = "1G", value_parser = size)]
    memory: u64,
    /// With --writable, let a change take away more than half of the documents, or all.
    #[arg(long)]
    allow_shrink: bool,
}

/// Options of a server with an index do not go with `--groups`.
fn unless_a_front(arg: clap::Arg) -> clap::Arg {
    match arg.get_id().as_str() {
        "groups" | "listen" | "read_token" | "allow_host" | "allow_origin" | "max_body"
        | "max_connections" | "timeout" => arg,
        "index" => arg
            .required(false)
            .required_unless_present("groups")
            .default_value_if("groups", ArgPredicate::IsPresent, ".")
            .conflicts_with("groups"),
        _ => arg.conflicts_with("groups"),
    }
}

fn address(text: &str) -> Result<SocketAddr, String> {
    let port = text.parse::<u16>().map(|port| SocketAddr::from(([127, 0, 0, 1], port)));
    let why = |_| "give address and port, such as 127.0.0.1:8080, or a port".to_string();
    port.or_else(|_| text.parse()).map_err(why)
}

fn group(text: &str) -> Result<GroupAddress, String> {
    let why = || "give the server's host and port, such as http://10.0.0.1:8080".to_string();
    GroupAddress::new(text).ok_or_else(why)
}

fn origin(text: &str) -> Result<String, String> {
    let rest = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://"));
    let is_one = rest.is_some_and(|rest| !rest.is_empty() && !rest.contains(['/', ' ', '*']));
    let why = || "give scheme, name and port as browsers send them, such as https://example.org";
    is_one.then(|| text.to_string()).ok_or_else(|| why().into())
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let options = args.options()?;
    if !args.groups.is_empty() {
        return args.front(options);
    }
    let asked = QueryArgs::of_server(&args.serving)?;
    let job = QueryJob::of(&asked)?;
    if let Some(hosts) = &job.hosts {
        return args.in_shards(&job, hosts, options);
    }
    let devices = job.devices()?;
    let snapshot = args.serving.ranking.open_for_any()?;
    let server = args.bind(options)?;
    let (live, seen) = millrace::inside::serve::live(snapshot.clone());
    let moved = move |snapshot: &Arc<Snapshot>| live(snapshot.clone());
    let control = job.control.clone();
    job.by(devices, snapshot, Box::new(moved), |service, asker, by| {
        let service = service.with_control(control);
        let server = args.begin(server, asker, seen)?;
        let report = service.run(answers())?;
        drop(server);
        totals(&asked, &report, by, None)
    })
}

/// Answers go to those who wait for them.
fn answers() -> Sink {
    Sink::text(AnswerForm::Jsonl, std::io::sink())
}

impl Args {
    /// The first of several processes listens, and all answer.
    fn in_shards(
        &self,
        job: &QueryJob<'_>,
        hosts: &Hosts,
        options: ServeOptions,
    ) -> anyhow::Result<()> {
        if self.writable {
            let why = "--writable works in one process: an index of several is built again";
            return Err(Usage(why.into()).into());
        }
        if hosts.process() > 0 {
            signals::watch(&job.control, Some(Duration::from_secs(3)))?;
        }
        let bind = || self.bind(ServeOptions { is_part: true, ..options });
        let begin = |server: Server, snapshot: &Arc<Snapshot>, asker| {
            let (live, seen) = millrace::inside::serve::live(snapshot.clone());
            let renew: Renew = Box::new(move |snapshot| live(snapshot.clone()));
            Ok((self.begin(server, asker, seen)?, renew))
        };
        job.in_shards(hosts, "serve", bind, begin, answers())
    }

    /// Sends requests on until a signal ends it.
    fn front(&self, options: ServeOptions) -> anyhow::Result<()> {
        let server = self.bind(options)?;
        let address = server.address()?;
        let server = server.start_front(self.groups.clone())?;
        signals::on_end(server.stopper())?;
        let groups = self.groups.len();
        tell!("a front of {groups} groups: answers at http://{address}");
        server.wait();
        report::write(serde_json::json!({"job": "serve", "groups": groups}), 0)
    }

    fn bind(&self, options: ServeOptions) -> anyhow::Result<Server> {
        more_files();
        let server = Server::bind(options, self.listen);
        server.with_context(|| format!("listening at {}", self.listen))
    }

    /// Lets a server answer until a signal ends it, and says where.
    fn begin(
        &self,
        server: Server,
        asker: Asker,
        seen: LiveSnapshot,
    ) -> anyhow::Result<RunningServer> {
        let address = server.address()?;
        let server = server.start(asker, seen)?;
        signals::on_end(server.stopper())?;
        let index = self.serving.ranking.index.display();
        tell!("{index}: answers at http://{address}");
        Ok(server)
    }

    /// A server over an index with nothing else asked for.
    pub(crate) fn of_demo(index: &Path, listen: SocketAddr) -> anyhow::Result<Self> {
        let listen = listen.to_string();
        as_given(&["--index".into(), index.into(), "--listen".into(), listen.into()])
    }

    fn options(&self) -> anyhow::Result<ServeOptions> {
        let is_here = self.listen.ip().is_loopback();
        if !is_here && self.read_token.is_none() {
            let why = format!("--listen {} lets other machines in: give --read-token", self.listen);
            return Err(Usage(why).into());
        }
        if !is_here && self.writable && self.write_token.is_none() {
            let why = format!("--writable with --listen {}: give --write-token", self.listen);
            return Err(Usage(why).into());
        }
        Ok(ServeOptions {
            index: self.serving.ranking.index.clone(),
            read_token: self.read_token.as_deref().map(token).transpose()?,
            write_token: self.write_token.as_deref().map(token).transpose()?,
            writable: self.writable,
            hosts: self.allow_host.clone(),
            origins: self.allow_origin.clone(),
            algorithms: papers::ALGORITHMS,
            most_hits: self.max_hits,
            most_body: self.max_body as usize,
            most_connections: self.max_connections,
            timeout: Duration::from_secs(self.timeout),
            memory: self.memory,
            allow_shrink: self.allow_shrink,
            is_part: false,
        })
    }
}

fn token(path: &Path) -> anyhow::Result<Token> {
    let text = std::fs::read_to_string(path);
    let text = text.with_context(|| format!("reading the token {}", path.display()))?;
    warn_of_readers(path, "token");
    let least = Token::LEAST_BYTES;
    let wrong = || {
        let path = path.display();
        Usage(format!("{path}: a token is a line of {least} characters or more, without blanks"))
    };
    Token::new(&text).ok_or_else(|| wrong().into())
}

/// Each connection is an open file: takes as many as the system lets this process have.
fn more_files() {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    let most = rustix::process::Rlimit { current: limit.maximum, ..limit };
    // With less it serves fewer connections.
    _ = rustix::process::setrlimit(rustix::process::Resource::Nofile, most);
}
