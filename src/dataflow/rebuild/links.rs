//! Finds the links of the pages of the input, without indexing them.
//!
//! ```text
//! read -> decompress -> parse (of links) -> (exchange) -> take
//! ```
//!
//! A page is known by its *key*: a hash of its address without the fragment, an empty query, and
//! the choice of `http` or `https`. Addresses are resolved and normalised as the URL standard has
//! it (the crate `url`). Only those of `http`, `https` and `file` count; a file that is a page has
//! its name, below the root, for an address.
//!
//! - In: the inputs of a build. Out: the links of each page, in no order, to the caller.
//! - Memory: a build's for what is under way.
//! - Work per activation: as in a build; in `take` all that has come.

use crate::crew::lock;
use crate::dataflow::build::context::{Build, BuildWiring};
use crate::dataflow::build::documents::take_in_order;
use crate::dataflow::build::parse::parse_input;
use crate::dataflow::control::{Cause, JobError, OperatorGuard};
use crate::dataflow::query::local::Local;
use crate::dataflow::workers;
use crate::dictionary::parsed::{PieceGroup, Regroup};
use crate::dictionary::vector::Vector;
use crate::index::documents::name_hash;
use crate::index::documents::pieces::PieceDocuments;
use crate::text::html::{Anchor, HtmlText, Page};
use std::path::Path;
use std::sync::{Arc, Mutex};
use timely::container::CapacityContainerBuilder;
use timely::dataflow::channels::pact::Exchange;
use timely::dataflow::operators::Probe;
use timely::dataflow::operators::generic::operator::Operator;
use timely::dataflow::{ProbeHandle, StreamVec};
use timely::worker::Worker;
use twox_hash::XxHash3_64;
use url::Url;

pub(crate) type TakeLinks = Box<dyn FnMut(&PageLinks) -> Result<(), Cause> + Send>;

/// Reads the inputs of `build`, on its workers, and gives the links of their pages to `take`, on
/// one of them.
pub(crate) fn links(build: &Build, take: TakeLinks) -> Result<(), JobError> {
    let shared = build.clone();
    let take = Mutex::new(Some(take));
    workers::run(build.plan.workers, &build.wiring.control, move |worker| {
        let take = (worker.index() == 0).then(|| lock(&take).take()).flatten();
        assemble(worker, &shared, take);
    })
}

fn assemble(worker: &mut Worker, build: &Build, take: Option<TakeLinks>) {
    worker.dataflow_named::<u64, _, _>("links", |scope| {
        let absorbed = ProbeHandle::new();
        let (groups, batches) = parse_input(scope, build, &absorbed, GatheredLinks::default());
        take_links(groups, &build.wiring, take).probe_with(&absorbed);
        let nobody = (scope.index() == 0).then_some(Ok(()));
        let wiring = build.wiring.clone();
        let forget = move |(): &mut (), batch: PieceDocuments| {
            wiring.flow.absorbed(batch.bytes());
            Ok(None::<()>)
        };
        take_in_order("Pages", batches, &build.wiring.control, nobody, forget, Ok)
            .probe_with(&absorbed);
    });
}

fn take_links<'scope>(
    stream: StreamVec<'scope, u64, Local<Vec<PageLinks>>>,
    wiring: &Arc<BuildWiring>,
    mut take: Option<TakeLinks>,
) -> StreamVec<'scope, u64, ()> {
    let wiring = wiring.clone();
    let worker = stream.scope().index();
    let to_first = Exchange::new(|_: &Local<Vec<PageLinks>>| 0);
    stream.unary::<CapacityContainerBuilder<Vec<()>>, _, _, _>(to_first, "Links", move |_, _| {
        let guard = OperatorGuard::new(&wiring.control, "Links", worker);
        move |input, _output| {
            input.for_each(|_, groups| {
                for Local(group) in groups.drain(..) {
                    wiring.flow.absorbed(group.memory_bytes());
                    guard.work(|| {
                        let take = take.as_mut().ok_or("links go to worker 0")?;
                        group.iter().try_for_each(take)
                    });
                }
            });
        }
    })
}

#[derive(Default)]
struct GatheredLinks {
    html: HtmlText,
    pages: Vec<PageLinks>,
    documents: u32,
}

impl PieceGroup for Vec<PageLinks> {
    fn memory_bytes(&self) -> usize {
        self.iter().map(PageLinks::memory_bytes).sum()
    }
}

impl Regroup for GatheredLinks {
    type Group = Vec<PageLinks>;

    fn page(&mut self, input: u32, page: &Page<'_>) {
        self.pages.extend(PageLinks::of(input, page, &mut self.html));
        self.html.shrink();
    }

    fn document(&mut self, _: &[u8]) -> u32 {
        self.documents += 1;
        0
    }

    fn vector(&mut self, _: Vector<'_>) -> u32 {
        self.documents += 1;
        0
    }

    fn documents(&self) -> u32 {
        self.documents
    }

    fn finish(&mut self) -> Vec<Vec<PageLinks>> {
        self.documents = 0;
        vec![std::mem::take(&mut self.pages)]
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PageLinks {
    /// By number, the file that the page lies in.
    pub file: u32,
    pub name: u128,
    pub key: u64,
    /// The keys of the pages that it leads to; one may be there twice.
    pub targets: Vec<u64>,
}

impl PageLinks {
    /// Nothing if the page has no address.
    pub(crate) fn of(file: u32, page: &Page<'_>, html: &mut HtmlText) -> Option<Self> {
        let own = address(page.url)?;
        let name = name_hash(String::from_utf8_lossy(page.name).as_bytes());
        let key = key(&own)?;
        let mut base = own.clone();
        let mut targets = Vec::new();
        html.anchors(page, |anchor| match anchor {
            Anchor::Base(to) => {
                if let Ok(to) = own.join(&String::from_utf8_lossy(to)) {
                    base = to;
                }
            }
            Anchor::To(to) => {
                let to = base.join(&String::from_utf8_lossy(to)).ok();
                targets.extend(to.and_then(|to| self::key(&to)));
            }
        });
        Some(Self { file, name, key, targets })
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        size_of::<Self>() + self.targets.capacity() * size_of::<u64>()
    }
}

/// The address of a page: a URL, maybe in angle brackets as old web archives have it, or the name
/// of a file, taken to lie below the root wherever the job runs.
fn address(written: &[u8]) -> Option<Url> {
    let text = String::from_utf8_lossy(written.trim_ascii());
    let text = text.strip_prefix('<').and_then(|text| text.strip_suffix('>')).unwrap_or(&text);
    if text.is_empty() {
        return None;
    }
    let file = || Url::from_file_path(Path::new("/").join(&*text)).ok();
    Url::parse(text).ok().or_else(file)
}

/// None if it is not the address of a page.
fn key(address: &Url) -> Option<u64> {
    let text = address.as_str();
    let text = text.split_once('#').map_or(text, |(text, _)| text);
    let text = text.strip_suffix('?').unwrap_or(text);
    let scheme = address.scheme();
    match scheme {
        "http" | "https" => Some(XxHash3_64::oneshot(&text.as_bytes()[scheme.len()..])),
        "file" => Some(XxHash3_64::oneshot(text.as_bytes())),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::html::Markup;

    fn links_of(url: &str, text: &str) -> Option<PageLinks> {
        let name = &b"page"[..];
        let url = url.as_bytes();
        let markup = Markup::Html;
        let page = Page { name, url, bytes: text.as_bytes(), markup, charset: None };
        PageLinks::of(3, &page, &mut HtmlText::new())
    }

    #[test]
    fn addresses_are_resolved_and_written_in_one_way() {
        let page = "<a href=b>1<a HREF='../c/./d?x=1&amp;y=2#z'>2<a href=//Other.ORG:80/%7Ea?>3<a href='mailto:x@y'>4\
            <area href='https://www.a.org/m/b'><a name=n>5<a href=e rel='x NOFOLLOW'>6<!-- <a href=f> --><a href='  '>7";
        let found = links_of("HTTP://WWW.a.org:80/m/n#frag", page).unwrap();
        let expected = [
            "www.a.org/m/b",
            "www.a.org/c/d?x=1&y=2",
            "other.org/%7Ea",
            "www.a.org/m/b",
            "www.a.org/m/n",
        ];
        let keys = expected.map(|url| key(&Url::parse(&format!("http://{url}")).unwrap()).unwrap());
        assert_eq!(found.targets, keys);
        assert_eq!((found.file, found.name), (3, name_hash(b"page")));
        assert_eq!(found.key, links_of("<https://www.a.org/m/n?>", "").unwrap().key);
        let based = links_of("http://a.org/x", "<base href=/m/><base href=/n/><a href=b>").unwrap();
        assert_eq!(based.targets, links_of("http://a.org/m/", "<a href=b>").unwrap().targets);
        let file = links_of("/pages/a/x y.html", "<a href='../b/z%20z.html'><a href=/q>").unwrap();
        assert_eq!(file.targets[0], links_of("/pages/b/z z.html", "").unwrap().key);
        assert_eq!(file.targets[1], links_of("/q", "").unwrap().key);
        assert_eq!((links_of("", "x"), links_of("dns:a.org", "x")), (None, None));
    }
}
