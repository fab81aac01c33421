//! The C++ headers that emulate a device.

/// What a program is compiled from, beside the kernels.
pub(crate) const HEADERS: [&str; 5] = [
    include_str!("cuda.h"),
    include_str!("floats.h"),
    include_str!("launch.h"),
    include_str!("machine.h"),
    include_str!("schedule.h"),
];
