//! Any bytes on a new line between processes are either a greeting that is read again as it is
//! written, or an error, without much memory.

use millrace::cluster::hello::{Hello, LineKind};

/// What is asked of an input.
pub fn hello(data: &[u8]) {
    let mut framed = b"millrace".to_vec();
    framed.extend_from_slice(&(data.len() as u32).to_be_bytes());
    framed.extend_from_slice(data);
    for bytes in [data, &framed] {
        let Ok((hello, _)) = Hello::read(&mut &bytes[..]) else { continue };
        let mut written = Vec::new();
        hello.write(&mut written).expect("a vector takes all");
        let again = Hello::read(&mut &written[..]).ok();
        assert_eq!(again.map(|(hello, _)| hello).as_ref(), Some(&hello));
        let ours = Hello::new("b", 1, "build", 2, 0, hello.process, LineKind::Control);
        if let Err(error) = ours.agree(&hello, "somewhere") {
            assert!(!error.to_string().is_empty());
        }
    }
}
