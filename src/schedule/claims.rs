//! Claims of splits of the input by parsers and readers. Splits are handed out in order, and no
//! sooner than parsers need them, since what comes from a later split waits for all earlier ones. A
//! split that is a shared file is handed out in pieces, its *stretches*, which whoever parses takes
//! in order; any other is read by one worker.

use crate::crew::lock;
use std::sync::{Arc, Mutex, MutexGuard};

pub(crate) struct Claims<F>(Mutex<ClaimState<F>>);

impl<F> Default for Claims<F> {
    fn default() -> Self {
        let (next, shared, is_stream, open, feeding) = Default::default();
        Self(Mutex::new(ClaimState { next, shared, is_stream, open, feeding }))
    }
}

struct ClaimState<F> {
    next: usize,
    /// The split before `next`, if it is a shared file, and its next stretch.
    shared: Option<(Shared<F>, u64)>,
    /// The split `next` is known not to be a shared file.
    is_stream: bool,
    open: usize,
    /// Open splits that have fed a parser.
    feeding: usize,
}

#[derive(Debug)]
pub(crate) struct Shared<F> {
    pub file: Arc<F>,
    /// One at least.
    pub stretches: u64,
}

/// The numbers of a split and of a stretch in it.
pub(crate) type Place = (usize, u64);

#[derive(Debug)]
pub(crate) enum Claim<T> {
    Taken(T),
    /// Not now; nothing before this place will be claimed.
    Wait(Place),
    Over,
}

pub(crate) struct Stretch<F> {
    pub file: Arc<F>,
    pub place: Place,
    /// Nothing before this place will be claimed.
    pub next: Place,
}

impl<F> ClaimState<F> {
    /// Opens the split `next` if it is a shared file; `open` gives `None` for other splits.
    fn shared<E>(
        &mut self,
        splits: usize,
        open: impl FnOnce(usize) -> Result<Option<Shared<F>>, E>,
    ) -> Result<(), E> {
        if self.shared.is_none() && self.next < splits && !self.is_stream {
            match open(self.next)? {
                Some(file) => {
                    self.shared = Some((file, 0));
                    self.next += 1;
                }
                None => self.is_stream = true,
            }
        }
        Ok(())
    }

    fn place(&self) -> Place {
        match self.shared {
            Some((_, stretch)) => (self.next - 1, stretch),
            None => (self.next, 0),
        }
    }
}

impl<F> Claims<F> {
    fn state(&self) -> MutexGuard<'_, ClaimState<F>> {
        lock(&self.0)
    }

    /// Claims the next split for one worker, if parsers are `hungry` or nothing else is open. A few
    /// may be on their way to the parsers at a time, since files may be small.
    pub(crate) fn claim<E>(
        &self,
        splits: usize,
        most_open: usize,
        hungry: bool,
        open: impl FnOnce(usize) -> Result<Option<Shared<F>>, E>,
    ) -> Result<Claim<usize>, E> {
        let mut state = self.state();
        state.shared(splits, open)?;
        let coming = state.open - state.feeding;
        let wanted = state.open == 0 || hungry && coming < most_open.div_ceil(4);
        Ok(if state.shared.is_some() {
            Claim::Wait(state.place())
        } else if state.next == splits {
            Claim::Over
        } else if !wanted || state.open == most_open {
            Claim::Wait(state.place())
        } else {
            state.open += 1;
            state.next += 1;
            state.is_stream = false;
            Claim::Taken(state.next - 1)
        })
    }

    /// Claims the next stretch of a shared file, if `may` allows its place; `may` is also told
    /// whether one worker reads any split before it.
    pub(crate) fn claim_stretch<E>(
        &self,
        splits: usize,
        may: impl FnOnce(Place, bool) -> bool,
        open: impl FnOnce(usize) -> Result<Option<Shared<F>>, E>,
    ) -> Result<Claim<Stretch<F>>, E> {
        let mut state = self.state();
        state.shared(splits, open)?;
        let (place, streams) = (state.place(), state.open > 0);
        let Some((Shared { file, stretches }, stretch)) = &mut state.shared else {
            return Ok(if state.next == splits { Claim::Over } else { Claim::Wait(place) });
        };
        if !may(place, streams) {
            return Ok(Claim::Wait(place));
        }
        let file = file.clone();
        *stretch += 1;
        if stretch == stretches {
            state.shared = None;
        }
        Ok(Claim::Taken(Stretch { file, place, next: state.place() }))
    }

    /// Tells that a claimed split gives its first piece.
    pub(crate) fn feeds(&self) {
        self.state().feeding += 1;
    }

    /// Tells that a claimed split is read and decoded, and whether it gave any piece.
    pub(crate) fn close(&self, fed: bool) {
        let mut state = self.state();
        state.open -= 1;
        state.feeding -= usize::from(fed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;

    fn split(claim: Result<Claim<usize>, Infallible>) -> Result<usize, Place> {
        match claim {
            Ok(Claim::Taken(split)) => Ok(split),
            Ok(Claim::Wait(place)) => Err(place),
            Ok(Claim::Over) => Err((usize::MAX, 0)),
        }
    }

    const OVER: Result<usize, Place> = Err((usize::MAX, 0));

    #[test]
    fn splits_are_handed_out_in_order_as_parsers_get_hungry() {
        let claims = Claims::<()>::default();
        let claim = |hungry| split(claims.claim(4, 3, hungry, |_| Ok(None)));
        assert_eq!(claim(false), Ok(0), "nothing else is open");
        assert_eq!((claim(false), claim(true)), (Err((1, 0)), Err((1, 0))), "one is coming");
        claims.feeds();
        assert_eq!((claim(false), claim(true)), (Err((1, 0)), Ok(1)));
        claims.feeds();
        assert_eq!(claim(true), Ok(2));
        claims.feeds();
        assert_eq!(claim(true), Err((3, 0)), "as many are open as may be");
        claims.close(true);
        assert_eq!((claim(true), claim(true)), (Ok(3), OVER));
        // The last gave no piece.
        claims.close(false);
        claims.close(true);
        claims.close(true);
        assert_eq!(claim(false), OVER);
    }

    #[test]
    fn shared_files_are_handed_out_in_stretches() {
        let claims = Claims::default();
        // The first and the last are such files.
        let open =
            |split: usize| Ok((split != 1).then(|| Shared { file: Arc::new(split), stretches: 2 }));
        let stream = || split(claims.claim(3, 2, true, open));
        let stretch = |may: bool| {
            let claim: Result<_, Infallible> = claims.claim_stretch(3, |_, _| may, open);
            match claim {
                Ok(Claim::Taken(Stretch { file, place, next })) => {
                    assert_eq!(*file, place.0);
                    Some((place, next))
                }
                Ok(Claim::Wait(place)) => Some((place, place)),
                Ok(Claim::Over) => None,
            }
        };
        assert_eq!(stream(), Err((0, 0)), "it is for all");
        assert_eq!(stretch(false), Some(((0, 0), (0, 0))));
        assert_eq!(stretch(true), Some(((0, 0), (0, 1))));
        assert_eq!((stream(), stretch(true)), (Err((0, 1)), Some(((0, 1), (1, 0)))));
        assert_eq!(stretch(true), Some(((1, 0), (1, 0))), "it is for one");
        assert_eq!((stream(), stream()), (Ok(1), Err((2, 0))));
        assert_eq!(stretch(true), Some(((2, 0), (2, 1))));
        assert_eq!(stretch(true), Some(((2, 1), (3, 0))));
        assert_eq!((stream(), stretch(true)), (OVER, None));
    }
}
