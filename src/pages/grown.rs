//! A growable list in an [`Area`]: no element is copied and no page cleared twice.

use super::Area;
use bytemuck::Zeroable;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

pub(crate) struct Grown<T: Copy> {
    area: Area,
    len: usize,
    elements: PhantomData<T>,
}

impl<T: Copy> Default for Grown<T> {
    fn default() -> Self {
        Self { area: Area::default(), len: 0, elements: PhantomData }
    }
}

impl<T: Copy> Grown<T> {
    #[inline(always)]
    fn room(&self) -> usize {
        const { assert!(size_of::<T>() > 0 && align_of::<T>() <= 4096) };
        self.area.bytes() / size_of::<T>()
    }

    #[inline]
    pub(crate) fn push(&mut self, element: T) {
        if self.len == self.room() {
            self.grow(self.len + 1);
        }
        // SAFETY: there is room for one more.
        unsafe { self.area.as_mut_ptr().cast::<T>().add(self.len).write(element) };
        self.len += 1;
    }

    pub(crate) fn resize(&mut self, count: usize, element: T) {
        if count > self.room() {
            self.grow(count);
        }
        while self.len < count {
            self.push(element);
        }
    }

    /// Appends zeros up to `count` elements. The list must never have been longer.
    ///
    /// The system's pages are zero, but each is written to here: a page that is read first is the
    /// shared zero page, whose later replacement stops all cores that run threads of the process.
    pub(crate) fn lengthen(&mut self, count: usize)
    where
        T: Zeroable,
    {
        if count > self.room() {
            self.grow(count);
        }
        let bytes = self.len * size_of::<T>()..count * size_of::<T>();
        self.area[bytes].chunks_mut(4096).for_each(|page| page[0] = 0);
        self.len = count;
    }

    pub(crate) fn truncate(&mut self, count: usize) {
        self.len = self.len.min(count);
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self, count: usize) {
        let bytes =
            count.checked_mul(size_of::<T>()).expect("a list is no larger than an object may be");
        let bytes = bytes.max(self.area.bytes().saturating_mul(2));
        self.area = std::mem::take(&mut self.area).grown(bytes);
    }
}

impl<T: Copy> Deref for Grown<T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        // SAFETY: this many elements were written, at multiples of their size from a page's start.
        unsafe { std::slice::from_raw_parts(self.area.as_ptr().cast(), self.len) }
    }
}

impl<T: Copy> DerefMut for Grown<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as above.
        unsafe { std::slice::from_raw_parts_mut(self.area.as_mut_ptr().cast(), self.len) }
    }
}
