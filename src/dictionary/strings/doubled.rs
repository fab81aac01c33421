//! Doubles a hash table in place: an element's slot in the larger table has the old number, or that
//! and the number of old slots.

use crate::pages::Grown;
use bytemuck::Zeroable;

/// Doubles a table in which some slot is free: equals the default, which is zeros. A search in it
/// begins in the line of the slot that the lower bits of a hash number, looks at its `LINE` slots
/// in any order, and goes on line by line; `place` gives the free slot where the search for an
/// element ends.
///
/// Lines are rehashed in order, beginning behind one with a free slot, which no search has passed.
/// Whatever a search passes has been rehashed before, for it ends at the latest in the line where
/// the element was, or in that line of the other half.
pub(crate) fn double<S, const LINE: usize>(
    slots: &mut Grown<S>,
    place: impl Fn(&mut [S], &S) -> usize,
) where
    S: Copy + Default + PartialEq + Zeroable,
{
    let free = S::default();
    let before = slots.len();
    slots.lengthen(before * 2);
    let from = slots[..before].iter().position(|slot| *slot == free).expect("a slot is free");
    let from = (from / LINE + 1) * LINE;
    for at in (from..before).chain(0..from).step_by(LINE) {
        let line = slots[at..].first_chunk_mut().expect("lines are whole");
        let line: [S; LINE] = std::mem::replace(line, [free; LINE]);
        for slot in line.iter().filter(|slot| **slot != free) {
            let at = place(slots, slot);
            slots[at] = *slot;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The slot that has a number, or the free one for it.
    fn find<const LINE: usize>(slots: &[u16], number: u16) -> usize {
        let home = number as usize & (slots.len() - 1);
        let line = home / LINE * LINE;
        let around = (0..LINE).map(|i| line + (home + i) % LINE);
        let mut order = around.chain((line + LINE..).map(|at| at & (slots.len() - 1)));
        order.find(|&at| [0, number].contains(&slots[at])).expect("a slot is free")
    }

    fn check<const LINE: usize>(numbers: &[u16], before: usize) -> Result<(), TestCaseError> {
        let mut slots = Grown::default();
        slots.lengthen(before);
        let numbers = &numbers[..numbers.len().min(before - 1)];
        for &number in numbers {
            let at = find::<LINE>(&slots, number);
            slots[at] = number;
        }
        double::<_, LINE>(&mut slots, |slots, number| find::<LINE>(slots, *number));
        prop_assert_eq!(slots.len(), 2 * before);
        for &number in numbers {
            prop_assert_eq!(slots[find::<LINE>(&slots, number)], number);
        }
        let mut distinct = numbers.to_vec();
        distinct.sort_unstable();
        distinct.dedup();
        prop_assert_eq!(slots.iter().filter(|slot| **slot != 0).count(), distinct.len());
        Ok(())
    }

    proptest! {
        /// Everything in the table is found in one with twice the slots, however full it was and
        /// wherever searches ran around its end.
        #[test]
        fn law_all_is_found_again(numbers in prop::collection::vec(1u16.., 0..64), narrow in 1u16..=u16::MAX, bits in 3u32..7) {
            let numbers: Vec<u16> = numbers.iter().map(|number| (number & narrow).max(1)).collect();
            check::<1>(&numbers, 1 << bits)?;
            check::<2>(&numbers, 1 << bits)?;
            check::<8>(&numbers, 1 << bits)?;
        }
    }
}
