//! The links between documents, from a file or from the pages of the sources: only files that are
//! new or have changed are read for them, the others' links are stored (`rebuild::links`).

use super::look::Looked;
use super::{Rebuild, RebuildError};
use crate::build::{self, Input};
use crate::crew::lock;
use crate::dataflow::rebuild::links::PageLinks;
use crate::rebuild::files::{self, Trust};
use crate::rebuild::history::FOLDER;
use crate::rebuild::job_file::keys::LinkKeys;
use crate::rebuild::nodes::{LinksInParts, Nodes, read_links};
use crate::rebuild::page_links::{LinkReader, LinkWriter, file_key};
use crate::score::pagerank::RankSettings;
use std::collections::{HashMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use twox_hash::XxHash3_64;

const PAGES: &str = "links";

pub(super) struct FoundLinks {
    pub(super) hash: String,
    pub(super) asked: RankSettings,
    path: PathBuf,
    of_pages: bool,
}

impl Rebuild<'_> {
    /// Finds the links, and brings those of pages up to date. `work` is a scratch folder.
    pub(super) fn links(
        &self,
        links: &LinkKeys,
        asked: RankSettings,
        looked: &Looked,
        work: &Path,
    ) -> Result<FoundLinks, RebuildError> {
        match &links.file {
            Some(path) => {
                let path = path.get_ref();
                let paths = std::slice::from_ref(path);
                let none = files::Known::default();
                let known = files::look(paths, Trust::Content, &none, |_, _| true, self.workers())?;
                let hash = known.file(path).map(|file| file.hash.clone());
                let hash = hash.unwrap_or_default();
                Ok(FoundLinks { hash, asked, path: path.clone(), of_pages: false })
            }
            None => {
                let path = self.job.index.join(FOLDER).join(PAGES);
                let mut keys = self.keys(looked);
                if self.renew(&path, &keys, looked, work, true).is_err() {
                    // A damaged file is found out again whole.
                    self.control.stop().check()?;
                    self.renew(&path, &keys, looked, work, false)?;
                }
                keys.sort_unstable();
                let hash = format!("{:016x}", XxHash3_64::oneshot(bytemuck::cast_slice(&keys)));
                Ok(FoundLinks { hash, asked, path, of_pages: true })
            }
        }
    }

    fn keys(&self, looked: &Looked) -> Vec<u64> {
        let key = |input: crate::input::list::InputFile| {
            let path = input.path.unwrap_or_default();
            let hash = looked.known.file(&path).map_or("", |file| &file.hash);
            file_key(&path, hash, &input.format.to_string())
        };
        looked.plan.inputs.iter().map(key).collect()
    }

    /// Makes the file of links that of the files with these keys; `keep` reuses what it has of
    /// them.
    fn renew(
        &self,
        path: &Path,
        keys: &[u64],
        looked: &Looked,
        work: &Path,
        keep: bool,
    ) -> Result<(), RebuildError> {
        let error = RebuildError::io(path);
        let old = LinkReader::open(path).filter(|_| keep);
        if old.as_ref().is_some_and(|old| old.files() == keys) {
            return Ok(());
        }
        let mut writer = LinkWriter::create(path, keys).map_err(error)?;
        let mut numbers: HashMap<u64, u32> = HashMap::new();
        (0..).zip(keys).for_each(|(number, &key)| _ = numbers.entry(key).or_insert(number));
        let mut known = HashSet::new();
        if let Some(mut old) = old {
            known.extend(old.files().iter().copied());
            let places: Vec<_> = old.files().iter().map(|key| numbers.get(key).copied()).collect();
            while let Some(mut page) = old.next().map_err(error)? {
                if let Some(number) = places[page.file as usize] {
                    page.file = number;
                    writer.push(&page).map_err(error)?;
                }
            }
        }
        let missing: Vec<usize> =
            (0..keys.len()).filter(|&number| !known.contains(&keys[number])).collect();
        let is_missing: HashSet<usize> = missing.iter().copied().collect();
        let writer = Arc::new(Mutex::new(writer));
        if !missing.is_empty() {
            let mut options = self.options()?;
            let plan = looked.plan.only(|input| is_missing.contains(&input));
            options.input = Input::Plan(Box::new(plan));
            let taker = writer.clone();
            let take = Box::new(move |page: &PageLinks| {
                let mut page = page.clone();
                page.file = missing[page.file as usize] as u32;
                let mut writer = lock(&taker);
                Ok(writer.push(&page)?)
            });
            build::links(options, work, take)?;
        }
        let writer = Arc::into_inner(writer).and_then(|writer| writer.into_inner().ok());
        writer.ok_or(RebuildError::Replaced)?.finish().map_err(error)
    }
}

impl FoundLinks {
    /// The links between documents, read by this many threads, and how many lead from or to no
    /// document, lines that are no links among them.
    pub(super) fn read(&self, nodes: &Nodes, threads: usize) -> Result<LinksInParts, RebuildError> {
        let read = match self.of_pages {
            true => read_pages(&self.path, nodes),
            false => read_links(&self.path, nodes, threads),
        };
        read.map_err(RebuildError::io(&self.path))
    }
}

/// Reads the links of pages twice, since an address is that of the first document with its page.
fn read_pages(path: &Path, nodes: &Nodes) -> io::Result<LinksInParts> {
    let open = || LinkReader::open(path).ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData));
    let mut of_address = HashMap::<u64, u32>::new();
    let mut reader = open()?;
    while let Some(page) = reader.next()? {
        if let Some(node) = nodes.get(page.name) {
            let first = of_address.entry(page.key).or_insert(node);
            *first = node.min(*first);
        }
    }
    let mut links = Vec::new();
    let mut passed_over = 0;
    let mut reader = open()?;
    while let Some(page) = reader.next()? {
        let source = nodes.get(page.name);
        for target in &page.targets {
            match (source, of_address.get(target)) {
                (Some(source), Some(&target)) => links.push((source, target)),
                _ => passed_over += 1,
            }
        }
    }
    Ok((vec![links], passed_over))
}
