//! The candidates that MaxScore searches optional lists for.

use crate::index::list::MAX_BLOCK;
use crate::query::kernels::{BlockRoom, Left, NO_DOCID};

#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct Asking {
    pub(crate) left: Left,
    /// The docids of those that a list has, and their numbers in `left`.
    pub(crate) met: BlockRoom,
    pub(crate) kept: BlockRoom,
    pub(crate) tfs: [u32; MAX_BLOCK],
    pub(crate) worth: [f32; MAX_BLOCK],
    /// By term and slot.
    pub(crate) scores: Vec<[f32; MAX_BLOCK]>,
}

impl Default for Asking {
    fn default() -> Self {
        let left = Left {
            docids: [NO_DOCID; MAX_BLOCK + 16],
            sums: [0.0; MAX_BLOCK + 16],
            slots: [0; MAX_BLOCK + 16],
            count: 0,
        };
        Asking {
            left,
            met: [NO_DOCID; MAX_BLOCK + 16],
            kept: [0; MAX_BLOCK + 16],
            tfs: [1; MAX_BLOCK],
            worth: [0.0; MAX_BLOCK],
            scores: Vec::new(),
        }
    }
}
