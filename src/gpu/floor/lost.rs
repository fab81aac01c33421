//! The devices that this process has lost. After a kernel has touched memory that is not there, or
//! the device has failed, the driver answers every call of this process on it with the same error.
//! Opening it again fails at once, so that the CPU may do the work.

use crate::crew::lock;
use cudarc::driver::DriverError;
use cudarc::driver::sys::CUresult;
use std::collections::BTreeMap;
use std::sync::Mutex;

static LOST: Mutex<BTreeMap<usize, DriverError>> = Mutex::new(BTreeMap::new());

/// Whether the process loses the device with this error.
pub(crate) fn is_sticky(error: DriverError) -> bool {
    use CUresult as E;
    matches!(
        error.0,
        E::CUDA_ERROR_ECC_UNCORRECTABLE
            | E::CUDA_ERROR_NVLINK_UNCORRECTABLE
            | E::CUDA_ERROR_ILLEGAL_ADDRESS
            | E::CUDA_ERROR_LAUNCH_TIMEOUT
            | E::CUDA_ERROR_CONTEXT_IS_DESTROYED
            | E::CUDA_ERROR_ASSERT
            | E::CUDA_ERROR_HARDWARE_STACK_ERROR
            | E::CUDA_ERROR_ILLEGAL_INSTRUCTION
            | E::CUDA_ERROR_MISALIGNED_ADDRESS
            | E::CUDA_ERROR_INVALID_ADDRESS_SPACE
            | E::CUDA_ERROR_INVALID_PC
            | E::CUDA_ERROR_LAUNCH_FAILED
            | E::CUDA_ERROR_EXTERNAL_DEVICE
    )
}

pub(crate) fn note(ordinal: usize, error: DriverError) {
    if is_sticky(error) {
        let mut lost = lock(&LOST);
        lost.entry(ordinal).or_insert(error);
    }
}

pub(crate) fn fault(ordinal: usize) -> Option<DriverError> {
    lock(&LOST).get(&ordinal).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_fault_of_a_device_stays() {
        // No machine has so many.
        let ordinal = 70_000;
        let [full, fault_1, fault_2] = [
            CUresult::CUDA_ERROR_OUT_OF_MEMORY,
            CUresult::CUDA_ERROR_ILLEGAL_ADDRESS,
            CUresult::CUDA_ERROR_LAUNCH_FAILED,
        ]
        .map(DriverError);
        note(ordinal, full);
        assert_eq!(fault(ordinal), None);
        note(ordinal, fault_1);
        note(ordinal, fault_2);
        assert_eq!(fault(ordinal), Some(fault_1));
        assert_eq!(fault(ordinal + 1), None);
    }
}
