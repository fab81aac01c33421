//! Zstandard, or what stands in its place where the feature `formats` is left out.

use crate::index::error::IndexError;
use std::path::Path;

#[cfg(feature = "formats")]
pub(super) use zstd::{
    bulk::Compressor,
    dict::{DecoderDictionary, EncoderDictionary, from_continuous},
    stream::read::Decoder as Inflater,
};

/// # Errors
/// Where texts can be neither packed nor unpacked.
pub(super) fn can_pack(path: &Path) -> Result<(), IndexError> {
    let why = "texts are kept and read with the feature `formats` of millrace, which was left out";
    if cfg!(feature = "formats") { Ok(()) } else { Err(IndexError::refused(path, why)) }
}

#[cfg(not(feature = "formats"))]
pub(super) use without::*;

/// Nothing of this is called, since [`can_pack`] is asked first.
#[cfg(not(feature = "formats"))]
mod without {
    use std::io::{Empty, Result, empty};
    use std::marker::PhantomData;

    pub(in super::super) struct DecoderDictionary<'a>(PhantomData<&'a ()>);
    pub(in super::super) struct EncoderDictionary<'a>(PhantomData<&'a ()>);
    pub(in super::super) struct Compressor;
    pub(in super::super) struct Inflater;

    impl DecoderDictionary<'_> {
        pub(in super::super) fn try_copy(_: &[u8]) -> Result<Self> {
            Ok(Self(PhantomData))
        }
    }

    impl EncoderDictionary<'_> {
        pub(in super::super) fn copy(_: &[u8], _: i32) -> Self {
            Self(PhantomData)
        }
    }

    impl Compressor {
        pub(in super::super) fn with_prepared_dictionary(
            _: &EncoderDictionary<'_>,
        ) -> Result<Self> {
            Ok(Self)
        }

        pub(in super::super) fn compress(&mut self, _: &[u8]) -> Result<Vec<u8>> {
            Ok(Vec::new())
        }
    }

    impl Inflater {
        pub(in super::super) fn with_prepared_dictionary(
            _: &[u8],
            _: &DecoderDictionary<'_>,
        ) -> Result<Empty> {
            Ok(empty())
        }
    }

    pub(in super::super) fn from_continuous(_: &[u8], _: &[usize], _: usize) -> Result<Vec<u8>> {
        Ok(Vec::new())
    }
}
