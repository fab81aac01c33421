//! Versions of CUDA (of the driver, of NVRTC), and architectures of devices.

use std::fmt;

/// As in `12.8`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    pub major: u32,
    pub minor: u32,
}

impl Version {
    /// From the driver's number, such as 12080.
    pub(crate) fn from_driver(number: i32) -> Self {
        let number = u32::try_from(number).unwrap_or(0);
        Self { major: number / 1000, minor: number % 1000 / 10 }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// A compute capability, as in `sm_90`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Architecture(pub u32);

impl Architecture {
    /// The least that kernels are written for: Turing.
    pub(crate) const LEAST: Self = Self(75);
}

impl fmt::Display for Architecture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sm_{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_driver_tells_versions_as_numbers() {
        for (number, text) in [(12080, "12.8"), (13000, "13.0"), (11040, "11.4"), (-1, "0.0")] {
            assert_eq!(Version::from_driver(number).to_string(), text);
        }
        assert!(Version::from_driver(12080) < Version::from_driver(13000));
        assert!(Version { major: 12, minor: 10 } > Version { major: 12, minor: 9 });
    }
}
