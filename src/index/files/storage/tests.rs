//! Tests of the files of an index: one by one, in rooms, and gathered from parts.

use super::*;
use crate::index::files::map::{Map, verify_all};
use crate::index::files::window::FileWindow;
use crate::index::format::{BLOCK_BYTES, FileKind, PAGE_BYTES};
use proptest::prelude::*;

fn header() -> FileHeader {
    FileHeader { kind: FileKind::Names, values: [1, 2, 3, 0, 0], last: 0 }
}

#[test]
fn entry_tells_length_and_checksum_of_the_file() {
    let folder = tempfile::tempdir().unwrap();
    for (i, body) in [0, 1, WRITE_BUFFER_BYTES, 3 * WRITE_BUFFER_BYTES + 5].iter().enumerate() {
        let body: Vec<u8> = (0..*body).map(|i| (i * 7 / 5) as u8).collect();
        let mut file = StorageFile::create(folder.path(), &i.to_string()).unwrap();
        let (head, tail) = body.split_at(body.len() / 3);
        file.write(head).unwrap();
        file.write(tail).unwrap();
        assert_eq!(file.body_bytes(), body.len() as u64);
        file.pad().unwrap();
        let entry = file.finish(header()).unwrap();

        let bytes = fs::read(folder.path().join(i.to_string())).unwrap();
        assert_eq!(bytes.len() as u64, entry.bytes);
        assert_eq!(bytes.len(), 64 + body.len().next_multiple_of(8));
        assert_eq!(crc32fast::hash(&bytes), entry.crc32);
        assert_eq!(bytes[..64], header().encode());
        assert_eq!(bytes[64..64 + body.len()], body);
    }
}

#[test]
fn parts_that_threads_write_are_the_file_of_one() {
    let folder = tempfile::tempdir().unwrap();
    let body: Vec<u8> = (0..3_000_000).map(|i| (i * 7 / 5) as u8).collect();
    for (case, part) in [777, WRITE_BUFFER_BYTES / 3, WRITE_BUFFER_BYTES + 1].iter().enumerate() {
        let create =
            |name: &str| StorageFile::create(folder.path(), &format!("{case}{name}")).unwrap();
        let placed = FilledFile::of(create("placed"));
        // Every fourth part is written by the same thread.
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let placed = &placed;
                let body = &body;
                scope.spawn(move || {
                    let mut buffer = Vec::new();
                    for at in (thread * part..body.len()).step_by(4 * part) {
                        let part = &body[at..body.len().min(at + part)];
                        let room = placed.room_at(at as u64, part.len() as u64);
                        placed.fill(room, [part], &mut buffer);
                        placed.check().unwrap();
                    }
                });
            }
        });
        let mut whole = create("whole");
        whole.write(&body).unwrap();
        let entries = [placed.end().unwrap(), whole].map(|mut file| {
            file.write(b"and what stands behind").unwrap();
            file.finish(header()).unwrap()
        });
        assert_eq!((entries[0].bytes, entries[0].crc32), (entries[1].bytes, entries[1].crc32));
        let read = |name| fs::read(folder.path().join(format!("{case}{name}"))).unwrap();
        assert!(read("placed") == read("whole"));
    }
}

#[test]
fn a_room_that_is_not_filled_is_an_error_of_all() {
    let Ok(file) = OpenOptions::new().read(true).write(true).open("/dev/full") else { return };
    let folder = tempfile::tempdir().unwrap();
    let full = StorageFile::create(folder.path(), "full").unwrap();
    let placed = FilledFile::of(StorageFile { file, ..full });
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let placed = &placed;
            scope.spawn(move || {
                let write = |n: u64| {
                    placed.fill(placed.room_at(n * 1000, 1000), [&[1; 1000][..]], &mut Vec::new());
                    placed.check().err()
                };
                let error = (thread..).step_by(4).find_map(write).unwrap();
                let IndexError::Storage { source, .. } = error else { panic!("{error}") };
                assert_eq!(source.kind(), io::ErrorKind::StorageFull);
            });
        }
    });
    assert!(matches!(placed.end(), Err(IndexError::Storage { .. })));
}

#[test]
fn a_file_is_never_replaced_by_accident() {
    let folder = tempfile::tempdir().unwrap();
    StorageFile::create(folder.path(), "a").unwrap();
    let error = StorageFile::create(folder.path(), "a").unwrap_err();
    assert!(error.to_string().ends_with("a: cannot create"), "{error}");
}

#[test]
fn links_and_copies_have_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name| folder.path().join(name);
    write_whole(&path("a"), b"some bytes").unwrap();
    link_or_copy(&path("a"), &path("b")).unwrap();
    copy(&path("a"), &path("c")).unwrap();
    assert_eq!(fs::read(path("b")).unwrap(), b"some bytes");
    assert_eq!(fs::read(path("c")).unwrap(), b"some bytes");
    link_or_copy(&path("a"), &path("b")).unwrap_err();
}

#[test]
fn trees_go_and_what_links_point_at_stays() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    write_whole(&path("kept"), b"x").unwrap();
    create_dir(&path("tree")).unwrap();
    create_dir(&path("tree")).unwrap();
    create_dir(&path("tree/inner")).unwrap();
    write_whole(&path("tree/inner/file"), b"x").unwrap();
    std::os::unix::fs::symlink(path("kept"), path("tree/link")).unwrap();
    remove_tree(&path("tree")).unwrap();
    assert!(!path("tree").exists());
    assert!(path("kept").exists());
    assert!(remove_tree(&path("tree")).unwrap_err().is_not_found());
}

#[test]
fn checksums_are_eight_digits() {
    let entry = FileEntry { name: "n".into(), bytes: 3, crc32: 0xab };
    let text = serde_json::to_string(&entry).unwrap();
    assert_eq!(text, r#"{"name":"n","bytes":3,"crc32":"000000ab"}"#);
    assert_eq!(serde_json::from_str::<FileEntry>(&text).unwrap(), entry);
    for wrong in ["ab", "000000AB", "+00000ab", "0000000ab"] {
        serde_json::from_str::<FileEntry>(&text.replace("000000ab", wrong)).unwrap_err();
    }
}

fn sums_of(body: &[u8]) -> Vec<u8> {
    let first = (PAGE_BYTES as usize - HEADER_BYTES).min(body.len());
    let (first, rest) = body.split_at(first);
    let pages = Some(first).filter(|first| !first.is_empty()).into_iter();
    let pages = pages.chain(rest.chunks(PAGE_BYTES as usize));
    pages.flat_map(|page| crc32fast::hash(page).to_le_bytes()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn law_rooms_filled_in_any_order_are_the_file_of_one(
        rooms in prop::collection::vec(prop_oneof![0usize..50, 4000usize..9000, Just(600_000)], 0..9),
        order in any::<u64>(),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let create = |name| StorageFile::create(folder.path(), name).unwrap();
        let bytes: Vec<u8> = (0..rooms.iter().sum::<usize>()).map(|i| (i * 7 / 5) as u8).collect();
        let mut whole = create("whole");
        whole.write(&bytes).unwrap();
        whole.write(&sums_of(&bytes)).unwrap();
        let filled = FilledFile::of(create("filled")).with_sums();
        let mut at = 0;
        let mut taken: Vec<_> = rooms.iter().map(|&len| {
            let range = at..at + len;
            at += len;
            (filled.room(len as u64), range)
        }).collect();
        taken.sort_by_key(|(_, range)| (range.start as u64 ^ order).wrapping_mul(order | 1));
        let halves = taken.len() / 2;
        let rest = taken.split_off(halves);
        std::thread::scope(|scope| {
            for half in [taken, rest] {
                let filled = &filled;
                let bytes = &bytes;
                scope.spawn(move || {
                    let mut buffer = Vec::new();
                    for (room, range) in half {
                        // One piece, and many.
                        let most = if range.start % 2 == 0 { 1000 } else { usize::MAX };
                        filled.fill(room, bytes[range].chunks(most), &mut buffer);
                    }
                });
            }
        });
        let mut file = filled.end().unwrap();
        file.take_sums().unwrap().unwrap().pour(&mut file).unwrap();
        let entries = [whole, file].map(|file| file.finish(header()).unwrap());
        prop_assert_eq!((entries[0].bytes, entries[0].crc32), (entries[1].bytes, entries[1].crc32));
        let read = |name| fs::read(folder.path().join(name)).unwrap();
        prop_assert!(read("whole") == read("filled"));
    }
}

#[test]
fn two_files_of_a_run_have_their_own_checksums() {
    let folder = tempfile::tempdir().unwrap();
    let bytes: Vec<u8> = (0..100 * PAGE_BYTES as usize).map(|i| (i / 1000) as u8).collect();
    // Both have more checksums than stay in memory.
    let files = ["000007.postings", "000007.positions"].map(|name| {
        let file = StorageFile::create(folder.path(), name).unwrap();
        let file = FilledFile::of(file).with_sums();
        let room = file.room(bytes.len() as u64);
        file.fill(room, [&bytes[..]], &mut Vec::new());
        file
    });
    for file in files {
        let mut file = file.end().unwrap();
        let path = file.path().to_owned();
        file.take_sums().unwrap().unwrap().pour(&mut file).unwrap();
        file.finish(header()).unwrap();
        assert!(fs::read(&path).unwrap().ends_with(&sums_of(&bytes)));
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
}

#[test]
fn what_is_gathered_is_the_same_file() {
    let folder = tempfile::tempdir().unwrap();
    let create = |name: &str| StorageFile::create(folder.path(), name).unwrap();
    let entry = |name: &str, mut file: StorageFile, pour: &dyn Fn(&mut StorageFile)| {
        pour(&mut file);
        file.pad().unwrap();
        let entry = file.finish(header()).unwrap();
        (entry.bytes, entry.crc32, fs::read(folder.path().join(name)).unwrap())
    };
    // Nothing, a page without the header, parts of a part, and several parts.
    for (case, count) in [0, 1, 504, 505, 9_000, 60_000u32].into_iter().enumerate() {
        let bytes = |i: u32| i.to_le_bytes().repeat(1 + i as usize % 30);
        let name = format!("{case}");
        let mut body = Vec::new();
        for i in 0..count {
            body.extend(bytes(i));
            body.resize(body.len().next_multiple_of(16), 0);
        }
        let mut file = create(&name);
        file.write(&body).unwrap();
        let expected = entry(&name, file, &|file| file.write(&sums_of(&body)).unwrap());
        for threads in [0, 1, 3] {
            let name = format!("{case}-{threads}");
            let mut file = GatheredFile::new(create(&name), threads);
            let mut zeros = 0;
            for i in 0..count {
                let mut source = vec![7; 3];
                source.extend(bytes(i));
                let end = source.len();
                let source: SharedBytes = Arc::new(source);
                file.append(zeros, &source, 3..end).unwrap();
                zeros =
                    file.body_bytes().next_multiple_of(16) as usize - file.body_bytes() as usize;
            }
            file.append(zeros, &(Arc::new(Vec::new()) as SharedBytes), 0..0).unwrap();
            let mut file = file.end().unwrap();
            let sums = file.take_sums().unwrap();
            let sums = std::cell::RefCell::new(sums);
            let found = entry(&name, file, &|file| {
                sums.take().into_iter().for_each(|s| s.pour(file).unwrap());
            });
            assert!(found == expected, "case {case}, {threads} threads");
        }
    }
}

/// Blocks of a file that threads wrote, read by a map and by a window: a damaged one is an error
/// that names the file and the place, when it is touched and not before.
#[test]
fn each_block_is_verified_when_it_is_read() {
    let folder = tempfile::tempdir().unwrap();
    for length in [8, 3 * 65_536 - 64, 3 * 65_536 - 56, 300_000] {
        let name = format!("{length}.names");
        let file = FilledFile::of(StorageFile::create(folder.path(), &name).unwrap());
        let body: Vec<u8> = (0..length).map(|i| (i * 7 / 5) as u8).collect();
        let half = (length / 3) & !7;
        for part in [half..length / 16 * 16, 0..half] {
            let room = file.room_at(part.start as u64, part.len() as u64);
            file.fill(room, [&body[part]], &mut Vec::new());
        }
        let mut file = file.end().unwrap();
        file.write(&body[length / 16 * 16..]).unwrap();
        let entry = file.finish(header()).unwrap();
        let path = folder.path().join(&name);
        let good = fs::read(&path).unwrap();
        let content = 64 + length as u64;
        let blocks = content.div_ceil(BLOCK_BYTES);
        assert_eq!(good.len() as u64, content + 8 * blocks.div_ceil(2));
        let open = || (Map::open(&path).unwrap(), FileWindow::checked(&path, 1000).unwrap());
        for threads in [1, 3] {
            verify_all(threads, &[(&open().0, entry.bytes, entry.crc32)]).unwrap();
        }
        open().0.check_all().unwrap();
        for block in 0..blocks {
            let start = (block * BLOCK_BYTES).max(64);
            let end = ((block + 1) * BLOCK_BYTES).min(content);
            let sum = content + 4 * block;
            for at in [start, end - 1, sum, sum + 3] {
                let mut bad = good.clone();
                bad[at as usize] ^= 16;
                fs::remove_file(&path).unwrap();
                fs::write(&path, &bad).unwrap();
                let (map, mut window) = open();
                let expected = format!("{}: byte {start}: expected", path.display());
                for other in 0..blocks {
                    let from = (other * BLOCK_BYTES).max(64);
                    let bytes = 1000.min(((other + 1) * BLOCK_BYTES).min(content) - from);
                    let read = map.checked(from, bytes).map(drop);
                    let seen = window.read(from, bytes as usize).map(drop);
                    for found in [read, seen] {
                        let message = found.err().map(|error| error.to_string());
                        let is_right = message.as_ref().is_none_or(|m| m.starts_with(&expected));
                        assert!(is_right, "{at}: {message:?}");
                        assert_eq!(message.is_some(), other == block, "{at}");
                    }
                }
                let error =
                    verify_all(2, &[(&map, entry.bytes, entry.crc32)]).unwrap_err().to_string();
                assert!(error.starts_with(&expected), "{error}");
                let error = map.check_all().unwrap_err().to_string();
                assert!(error.starts_with(&expected), "{error}");
            }
        }
    }
}
