//! Logarithms and powers that come out alike, to the last bit, on every machine. Those of the
//! standard library are the platform's and do not; these use additions, multiplications and
//! divisions alone, which IEEE 754 fixes. Their relative error is some 1e-15.

use std::f64::consts::{LN_2, SQRT_2};

/// 1, 1/3, 1/5, ...
const ODD: [f64; 11] = {
    let mut terms = [1.0; 11];
    let mut n = 1;
    while n < 11 {
        terms[n] = 1.0 / (2 * n + 1) as f64;
        n += 1;
    }
    terms
};

/// 1, 1/2!, 1/3!, ...
const FACTORIALS: [f64; 16] = {
    let mut terms = [1.0; 16];
    let mut n = 1;
    while n < 16 {
        terms[n] = terms[n - 1] / (n + 1) as f64;
        n += 1;
    }
    terms
};

/// The natural logarithm of a positive, finite, normal number.
pub(super) fn ln(x: f64) -> f64 {
    debug_assert!(x.is_normal() && x > 0.0);
    let bits = x.to_bits();
    let mut exponent = ((bits >> 52) & 0x7ff) as i64 - 1023;
    let mut mantissa = f64::from_bits((bits & ((1 << 52) - 1)) | (1023 << 52));
    if mantissa > SQRT_2 {
        mantissa /= 2.0;
        exponent += 1;
    }
    // ln m = 2 artanh((m - 1) / (m + 1)), of at most 0.172.
    let t = (mantissa - 1.0) / (mantissa + 1.0);
    let square = t * t;
    let sum = ODD.iter().rev().fold(0.0, |sum, term| sum * square + term);
    exponent as f64 * LN_2 + 2.0 * t * sum
}

/// e to the power of x, for x from -700 to 700.
pub(super) fn exp(x: f64) -> f64 {
    debug_assert!(x.abs() <= 700.0);
    let halvings = (x / LN_2).round();
    // The first part of ln 2 ends in zeros, so that the product with a small integer is exact.
    let rest = (x - halvings * 6.931_471_803_691_238e-1) - halvings * 1.908_214_929_270_587_7e-10;
    let power = f64::from_bits(((halvings as i64 + 1023) as u64) << 52);
    power * (1.0 + rest * growth(rest))
}

/// (e^x - 1) / x, for x from -0.7 to 0.7.
pub(super) fn growth(x: f64) -> f64 {
    FACTORIALS.iter().rev().fold(0.0, |sum, term| sum * x + term)
}

/// x to the power of e, for a positive x.
pub(super) fn pow(x: f64, e: f64) -> f64 {
    exp(e * ln(x))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(found: f64, expected: f64) {
        assert!((found - expected).abs() <= 4e-15 * expected.abs(), "{found} {expected}");
    }

    #[test]
    fn oracle_the_standard_library() {
        for i in 1..2000 {
            let x = f64::from(i) * 0.37;
            close(ln(x), x.ln());
            close(pow(x, -1.6), x.powf(-1.6));
            close(exp(x / 10.0), (x / 10.0).exp());
            close(exp(-x / 10.0), (-x / 10.0).exp());
        }
        close(ln(1e300), 1e300f64.ln());
        assert_eq!(ln(1.0), 0.0);
        for x in [-0.7, -0.1, -1e-9, 1e-12, 0.3, 0.7] {
            close(growth(x), f64::exp_m1(x) / x);
        }
        assert_eq!(growth(0.0), 1.0);
    }
}
