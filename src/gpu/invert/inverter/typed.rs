//! Typed access to the arrays of a machine: places and lengths count values, not bytes.

use crate::gpu::floor::error::GpuError;
use crate::gpu::invert::machine::{ArrayReading, InvertMachine};
use crate::gpu::invert::steps::{self, COUNTERS, InvertArray, SUM};
use crate::pages;
use bytemuck::{Pod, Zeroable};

pub(super) fn part<T: Pod>(array: InvertArray, at: u64, to: &mut [T]) -> ArrayReading<'_> {
    ArrayReading { array, at: at * size_of::<T>() as u64, to: bytemuck::cast_slice_mut(to) }
}

pub(super) trait Typed {
    type On: InvertMachine + ?Sized;

    fn on(&mut self) -> &mut Self::On;

    /// Makes an array at least so long; its content is lost.
    fn reserve<T>(&mut self, array: InvertArray, len: u64) -> Result<(), GpuError> {
        self.on().reserve(array, (len * size_of::<T>() as u64).max(16), 0)
    }

    fn reserve_tiles(&mut self, tiles: u32) -> Result<(), GpuError> {
        self.reserve::<u32>(InvertArray::Tiles, tiles.into())?;
        self.reserve::<u32>(InvertArray::Sums, steps::sum_words(tiles).into())
    }

    /// The first `at` values stay.
    fn put<T: Pod>(&mut self, array: InvertArray, at: u64, values: &[T]) -> Result<(), GpuError> {
        let bytes: &[u8] = bytemuck::cast_slice(values);
        let from = at * size_of::<T>() as u64;
        self.on().reserve(array, (from + bytes.len() as u64).max(16), from)?;
        self.on().write(array, from, &[bytes])
    }

    fn get<T: Pod + Zeroable>(
        &mut self,
        array: InvertArray,
        at: u64,
        len: usize,
    ) -> Result<Vec<T>, GpuError> {
        // On huge pages, if there are any: lists are large, and their memory is first touched here.
        let mut values = pages::zeroed(len);
        self.on().read(&mut [part(array, at, &mut values)])?;
        Ok(values)
    }

    fn counters(&mut self) -> Result<[u32; COUNTERS], GpuError> {
        let mut counters = [0; COUNTERS];
        self.on().read(&mut [part(InvertArray::Counters, 0, &mut counters)])?;
        Ok(counters)
    }

    fn sum(&mut self) -> Result<u32, GpuError> {
        let mut sum = [0];
        self.on().read(&mut [part(InvertArray::Counters, SUM as u64, &mut sum)])?;
        Ok(sum[0])
    }
}
