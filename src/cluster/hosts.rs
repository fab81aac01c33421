//! The addresses of the processes of a job.

use super::ClusterError;
use std::path::Path;

const FIRST_PORT: usize = 2101;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hosts {
    addresses: Vec<String>,
    process: usize,
}

impl Hosts {
    /// Process i is at port 2101 + i of `localhost`.
    pub fn local(processes: usize, process: usize) -> Self {
        let addresses = (0..processes).map(|i| format!("localhost:{}", FIRST_PORT + i)).collect();
        Self { addresses, process }
    }

    /// A host file has `host:port` of process 0, 1, and so on, a line each. Blank lines, lines that
    /// begin with `#`, and lines behind those of the job's processes do not count.
    pub fn read(path: &Path, processes: usize, process: usize) -> Result<Self, ClusterError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| ClusterError::HostFile { path: path.into(), source })?;
        let mut addresses = Vec::new();
        for (line, number) in text.lines().map(str::trim).zip(1..) {
            if line.is_empty() || line.starts_with('#') || addresses.len() == processes {
                continue;
            }
            let port = line.rsplit_once(':').filter(|(host, _)| !host.is_empty());
            if !port.is_some_and(|(_, port)| port.parse::<u16>().is_ok_and(|port| port > 0)) {
                let path = path.into();
                let found = line.to_string();
                return Err(ClusterError::HostLine { path, line: number, found });
            }
            addresses.push(line.to_string());
        }
        if addresses.len() < processes {
            let path = path.into();
            let found = addresses.len();
            return Err(ClusterError::TooFewHosts { path, expected: processes, found });
        }
        Ok(Self { addresses, process })
    }

    pub fn process(&self) -> usize {
        self.process
    }

    pub fn processes(&self) -> usize {
        self.addresses.len()
    }

    pub(crate) fn address(&self, process: usize) -> &str {
        self.addresses.get(process).map_or("no address", String::as_str)
    }

    pub(crate) fn name(&self, process: usize) -> String {
        format!("process {process} ({})", self.address(process))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, processes: usize) -> Result<Hosts, String> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        Hosts::read(file.path(), processes, 0).map_err(|e| e.to_string())
    }

    #[test]
    fn a_line_is_an_address() {
        let hosts = read("# three\na:1\n\n b.example:65535 \r\n[::1]:7\nmore", 3).unwrap();
        let addresses: Vec<_> = (0..3).map(|i| hosts.address(i)).collect();
        assert_eq!(addresses, ["a:1", "b.example:65535", "[::1]:7"]);
        assert_eq!(hosts.name(1), "process 1 (b.example:65535)");
    }

    #[test]
    fn what_is_no_address_is_named() {
        for bad in ["host", "host:", ":1", "host:0", "host:65536", "host:x"] {
            let error = read(&format!("a:1\n{bad}\n"), 2).unwrap_err();
            assert!(error.contains("line 2") && error.contains(bad), "{error}");
        }
        let error = read("a:1\nb:2\n", 3).unwrap_err();
        assert!(error.contains("3 processes") && error.contains("only 2"), "{error}");
    }

    #[test]
    fn without_a_file_all_are_here() {
        let hosts = Hosts::local(2, 1);
        assert_eq!((hosts.address(0), hosts.address(1)), ("localhost:2101", "localhost:2102"));
        assert_eq!((hosts.process(), hosts.processes()), (1, 2));
    }
}
