//! Lets a whole job run on devices that are not there: a library takes the place of the driver's,
//! whose devices are emulated (`driver.cpp`). That shows that the host asks for the right things
//! and that what it gets back is the answer; it does not show that a real driver takes them.

#[path = "../emulation/headers.rs"]
mod headers;
mod kernels;

pub(crate) use kernels::{DING09, HUANG, QUERY, WANG};

use headers::HEADERS;
use kernels::Kernels;
use std::collections::hash_map::DefaultHasher;
use std::ffi::OsString;
use std::fs;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;

/// What finds kernels and runs them. It is compiled with the kernels, so that these change between
/// fibers; the driver itself, which other threads call meanwhile, does not, and calls these while
/// it holds the machine.
const LAUNCHER: &str = r#"
using Body = std::function<void()>;
struct Entry { const char* name; std::function<Body(void**)> bind; };
template <typename... A, size_t... I>
Body bind_raw(void (*f)(A...), void** arguments, std::index_sequence<I...>) {
    auto decoded = std::make_tuple(*(A*)arguments[I]...);
    return [f, decoded] { std::apply(f, decoded); };
}
template <typename... A>
Entry entry(const char* name, void (*f)(A...)) {
    return {name, [f](void** arguments) { return bind_raw(f, arguments, std::index_sequence_for<A...>()); }};
}
static const std::vector<Entry> entries = {ENTRIES};
extern "C" const void* pretended_kernel(const char* name) {
    for (const Entry& each : entries) if (!strcmp(each.name, name)) return &each;
    return nullptr;
}
extern "C" void* pretended_bind(const void* kernel, void** arguments) {
    return new Body(((const Entry*)kernel)->bind(arguments));
}
extern "C" void pretended_run(void* bound, unsigned blocks, unsigned threads, unsigned shared_bytes, unsigned seed) {
    emulation::machine.body = *(Body*)bound;
    emulation::run_grid(blocks, threads, shared_bytes, seed);
}
"#;

/// The folder of libraries with these kernels, for `LD_LIBRARY_PATH`; `None`, and a line that says
/// so, where they cannot be made.
///
/// # Panics
/// With the compiler's messages, if the kernels do not compile.
pub(crate) fn pretended(kernels: &Kernels) -> Option<PathBuf> {
    let Kernels { text, names, sizes } = kernels;
    let compiler = std::env::var_os("CXX").unwrap_or_else(|| OsString::from("c++"));
    let version = Command::new(&compiler).arg("--version").output();
    let is_possible = cfg!(all(target_os = "linux", target_arch = "x86_64"));
    let (Ok(version), true) = (version, is_possible) else {
        let required = std::env::var_os("MILLRACE_REQUIRE_CXX").is_some_and(|v| !v.is_empty());
        assert!(!required, "MILLRACE_REQUIRE_CXX is set, and no driver can be pretended here");
        eprintln!("skipped: no C++ compiler, or not Linux on x86-64");
        return None;
    };
    let driver = include_str!("driver.cpp");
    let mut hasher = DefaultHasher::new();
    (HEADERS, LAUNCHER, driver, text, names, sizes, version.stdout).hash(&mut hasher);
    let parent = Path::new(env!("CARGO_TARGET_TMPDIR")).join("emulation");
    let folder = parent.join(format!("driver-{:016x}", hasher.finish()));
    if !folder.exists() {
        fs::create_dir_all(&parent).unwrap();
        let work = tempfile::tempdir_in(&parent).unwrap();
        // The tests of a package below share this file.
        let mut folders = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
        let header = folders.find_map(|folder| {
            Some(folder.join("tests/support/emulation/launch.h")).filter(|header| header.exists())
        });
        let header = header.expect("a folder above has it");
        let entries: Vec<String> =
            names.iter().map(|name| format!("entry(\"{name}\", {name})")).collect();
        let launcher = LAUNCHER.replace("ENTRIES", &entries.join(", "));
        let header = format!("#include \"{}\"\n", header.display());
        fs::write(work.path().join("kernels.cpp"), [&header, *text, &launcher].concat()).unwrap();
        fs::write(work.path().join("driver.cpp"), driver).unwrap();
        let compile = |options: &[&str]| {
            let common = ["-std=c++17", "-O1", "-fPIC", "-ffp-contract=off"];
            let sizes = sizes.iter().map(|(name, value)| format!("-D{name}={value}"));
            let mut command = Command::new(&compiler);
            command.args(common).args(sizes).args(options).current_dir(work.path());
            let done = command.output().unwrap();
            assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        };
        let fibers = ["-fsanitize-coverage=trace-pc", "-fvisibility=hidden"];
        compile(&[&fibers[..], &["-c", "kernels.cpp", "-o", "kernels.o"]].concat());
        compile(&["-shared", "driver.cpp", "kernels.o", "-o", "libcuda.so"]);
        fs::copy(work.path().join("libcuda.so"), work.path().join("libnvrtc.so")).unwrap();
        // Another test was quicker, if it is there already.
        if let Err(error) = fs::rename(work.path(), &folder) {
            assert!(folder.exists(), "{error}");
        }
    }
    Some(folder)
}
