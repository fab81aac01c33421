//! The list of codecs and their names.

use super::Codec;
use super::bp128::Bp128;
use super::newpfd::NewPfd;
use super::pfor::Pfor;
use super::rice::Rice;
use super::vbyte::VByte;
use crate::settings::names;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ListCodec {
    #[default]
    Bp128,
    NewPfd,
    VByte,
    Rice,
    /// With one level.
    Pfor,
}

names!(ListCodec {
    Bp128 = "bp128",
    NewPfd = "newpfd",
    VByte = "vbyte",
    Rice = "rice",
    Pfor = "pfor",
});

impl ListCodec {
    /// The lengths of its blocks, the least first.
    pub(crate) fn block_lens(self) -> Vec<usize> {
        let mut lens = self.codec().block_lens().to_vec();
        lens.sort_unstable();
        lens
    }

    pub fn codec(self) -> &'static dyn Codec {
        match self {
            ListCodec::Bp128 => &Bp128,
            ListCodec::NewPfd => &NewPfd,
            ListCodec::VByte => &VByte,
            ListCodec::Rice => &Rice,
            ListCodec::Pfor => &Pfor::DEFAULT,
        }
    }
}
