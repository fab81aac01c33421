//! Inflates a gzip member at once that lies whole in memory. Members of web archives are small, and
//! an inflater that need not stop anywhere is twice as fast (libdeflate).

#![allow(unsafe_code)]

use libdeflate_sys::{
    libdeflate_alloc_decompressor, libdeflate_decompressor, libdeflate_deflate_decompress_ex,
    libdeflate_free_decompressor, libdeflate_result_LIBDEFLATE_SUCCESS,
};
use std::ptr::NonNull;

pub(crate) struct WholeDecoder(NonNull<libdeflate_decompressor>);

// SAFETY: a decompressor belongs to its holder and to no thread.
unsafe impl Send for WholeDecoder {}

impl WholeDecoder {
    /// `None` when there is no memory for it.
    pub(crate) fn new() -> Option<Self> {
        // SAFETY: the function has no conditions.
        NonNull::new(unsafe { libdeflate_alloc_decompressor() }).map(Self)
    }

    /// Inflates the deflate stream (RFC 1951) that `input` begins with. Returns its bytes in
    /// `input` and those that it has made in `room`; `None` if it is damaged, goes on behind
    /// `input`, or does not fit.
    pub(crate) fn inflate(&mut self, input: &[u8], room: &mut [u8]) -> Option<(usize, usize)> {
        let mut taken = 0;
        let mut made = 0;
        // SAFETY: the decompressor is live and borrowed by nobody else; both pointers are good for
        // the lengths given with them, and the function reads nothing from `room`.
        let result = unsafe {
            libdeflate_deflate_decompress_ex(
                self.0.as_ptr(),
                input.as_ptr().cast(),
                input.len(),
                room.as_mut_ptr().cast(),
                room.len(),
                &mut taken,
                &mut made,
            )
        };
        if result != libdeflate_result_LIBDEFLATE_SUCCESS {
            return None;
        }
        Some((taken, made))
    }
}

impl Drop for WholeDecoder {
    fn drop(&mut self) {
        // SAFETY: it was allocated by `new` and is used no more.
        unsafe { libdeflate_free_decompressor(self.0.as_ptr()) };
    }
}
