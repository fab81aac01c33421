//! The intrinsics for numbers are those of a device: the same functions by exact arithmetic on the
//! host.

use super::{Arg, Emulator, Launch};
use crate::inside_tests::util::Random;

/// The least f32 that is not below the exact value, which lies a little off `nearest` to the side
/// of `above`; and the greatest that is not above it.
fn directed(nearest: f32, above: std::cmp::Ordering) -> (f32, f32) {
    match above {
        std::cmp::Ordering::Less => (nearest, nearest.next_down()),
        std::cmp::Ordering::Equal => (nearest, nearest),
        std::cmp::Ordering::Greater => (nearest.next_up(), nearest),
    }
}

/// A float as a whole number of units of 2^-160.
fn exact(x: f32) -> i128 {
    let bits = x.to_bits();
    let exponent = (bits >> 23 & 255) as i32;
    let mantissa = i128::from(bits & 0x7f_ffff | 0x80_0000);
    let units = mantissa << (exponent - 100);
    if x < 0.0 { -units } else { units }
}

fn expected(a: u32, b: u32) -> [u32; 24] {
    let x = f32::from_bits(a);
    let y = f32::from_bits(b);
    let sum = x + y;
    let product = x * y;
    let quotient = x / y;
    let (sum_up, sum_down) = directed(sum, (exact(x) + exact(y)).cmp(&exact_or_zero(sum)));
    let product_exact = f64::from(x) * f64::from(y);
    let (product_up, product_down) =
        directed(product, product_exact.total_cmp(&f64::from(product)));
    // x / y is above q where x is above q * y, for a y above 0.
    let times = f64::from(quotient) * f64::from(y);
    let above = f64::from(x).total_cmp(&times);
    let above = if y < 0.0 { above.reverse() } else { above };
    let (quotient_up, quotient_down) = directed(quotient, above);
    let halves = |f: fn(u32, u32) -> u32| f(a & 0xffff, b & 0xffff) | f(a >> 16, b >> 16) << 16;
    let bytes = std::array::from_fn(|i| a.to_le_bytes()[i].saturating_add(b.to_le_bytes()[i]));
    let near = a as f32;
    [
        sum.to_bits(),
        product.to_bits(),
        quotient.to_bits(),
        sum_up.to_bits(),
        product_up.to_bits(),
        quotient_up.to_bits(),
        sum_down.to_bits(),
        product_down.to_bits(),
        quotient_down.to_bits(),
        (x * y + x).to_bits(),
        (x * y + x).to_bits(),
        x.round_ties_even() as u32,
        x.ceil() as u32,
        x as u32,
        near.to_bits(),
        directed(near, f64::from(a).total_cmp(&f64::from(near))).0.to_bits(),
        a.min(b),
        a.max(b),
        a.count_ones(),
        a.leading_zeros(),
        if a == 0 { 0 } else { a.trailing_zeros() + 1 },
        halves(u32::max),
        u32::from_le_bytes(bytes),
        ((u64::from(a) * u64::from(b)) >> 32) as u32,
    ]
}

fn exact_or_zero(x: f32) -> i128 {
    if x == 0.0 { 0 } else { exact(x) }
}

#[test]
fn twin_intrinsics_are_those_of_exact_arithmetic() {
    let text = concat!(include_str!("../../../kernels/common.cuh"), include_str!("arithmetic.cu"));
    let Some(emulator) = Emulator::compile(text, &["arithmetic"], &[]) else { return };
    let mut random = Random::new(4);
    // Floats whose sums and products stay within the range.
    let mut float = |small: bool| {
        let exponent = if small { 110 + random.below(34) } else { 127 } as u32;
        (random.next() as u32 & 0x807f_ffff) | exponent << 23
    };
    let mut pairs: Vec<(u32, u32)> =
        (0..1020).map(|i| (float(i % 3 > 0), float(i % 2 > 0))).collect();
    let one = 1f32.to_bits();
    pairs.extend([
        (one, one),
        (one, (-1f32).to_bits()),
        (2.5f32.to_bits(), one),
        (3.5f32.to_bits(), 7),
    ]);
    pairs.truncate(1024);
    pairs[1023].1 = 3f32.to_bits();
    let bytes = |of: fn(&(u32, u32)) -> u32| -> Vec<u8> {
        pairs.iter().flat_map(|pair| of(pair).to_le_bytes()).collect()
    };
    let mut a = bytes(|p| p.0);
    let mut b = bytes(|p| p.1);
    let mut out = vec![0; 1024 * 24 * 4];
    let launch =
        Launch { kernel: "arithmetic", blocks: 1, threads: 1024, shared_bytes: 0, seed: 0 };
    emulator.launch(launch, &mut [&mut a, &mut b, &mut out], &[0, 1, 2].map(Arg::Buffer)).unwrap();
    let mut words = out.chunks(4).map(|word| u32::from_le_bytes(word.try_into().unwrap()));
    for (a, b) in pairs {
        for (what, expected) in expected(a, b).into_iter().enumerate() {
            assert_eq!(words.next().unwrap(), expected, "{a:#x}, {b:#x}, value {what}");
        }
    }
}
