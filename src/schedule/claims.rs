//! Claims of splits of the input by parsers and readers. Splits are handed out in order, and no
//! sooner than parsers need them, since what comes from a later split waits for all earlier ones. A
//! split that is a shared file is handed out in pieces, its *stretches*, which parsers take
//! in order; any other is read by one worker.

use crate::crew::lock;
use std::sync::{Arc, Mutex};

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
    shared: Option<(SharedSplit<F>, u64)>,
    /// The split `next` is known not to be a shared file.
    is_stream: bool,
    open: usize,
    /// Open splits that have fed a parser.
    feeding: usize,
}

#[derive(Debug)]
pub(crate) struct SharedSplit<F> {
    pub file: Arc<F>,
    /// One at least.
    pub stretches: u64,
}

/// The numbers of a split and of a stretch in it.
pub(crate) type ClaimPlace = (usize, u64);

/// What is next, for who asks.
pub(crate) enum Claim<F> {
    /// A stretch of a shared file; nothing before the `next` place will be claimed.
    Stretch {
        file: Arc<F>,
        place: ClaimPlace,
        next: ClaimPlace,
    },
    /// A split that one worker reads; nothing before the `next` place will be claimed.
    Split {
        split: usize,
        next: ClaimPlace,
    },
    /// Not now; nothing before this place will be claimed.
    Wait(ClaimPlace),
    Over,
}

impl<F> ClaimState<F> {
    /// Opens the split `next` if it is a shared file; `open` gives `None` for other splits.
    fn shared<E>(
        &mut self,
        splits: usize,
        open: impl FnOnce(usize) -> Result<Option<SharedSplit<F>>, E>,
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

    fn place(&self) -> ClaimPlace {
        match self.shared {
            Some((_, stretch)) => (self.next - 1, stretch),
            None => (self.next, 0),
        }
    }
}

impl<F> Claims<F> {
    /// Claims the next split for one worker, if parsers are `hungry` or nothing else is open. A few
    /// may be on their way to the parsers at a time, since files may be small.
    pub(crate) fn claim<E>(
        &self,
        splits: usize,
        most: usize,
        hungry: bool,
        may_share: impl FnOnce(ClaimPlace, bool) -> bool,
        open: impl FnOnce(usize) -> Result<Option<SharedSplit<F>>, E>,
    ) -> Result<Claim<F>, E> {
        let mut state = lock(&self.0);
        state.shared(splits, open)?;
        let place = state.place();
        let streams = state.open > 0;
        if let Some((SharedSplit { file, stretches }, stretch)) = &mut state.shared {
            if !may_share(place, streams) {
                return Ok(Claim::Wait(place));
            }
            let file = file.clone();
            *stretch += 1;
            if stretch == stretches {
                state.shared = None;
            }
            return Ok(Claim::Stretch { file, place, next: state.place() });
        }
        let coming = state.open - state.feeding;
        let wanted = !streams || hungry && coming < most.div_ceil(4);
        Ok(if state.next == splits {
            Claim::Over
        } else if !wanted || state.open == most {
            Claim::Wait(place)
        } else {
            state.open += 1;
            state.next += 1;
            state.is_stream = false;
            Claim::Split { split: place.0, next: state.place() }
        })
    }

    /// Tells that a claimed split gives its first piece.
    pub(crate) fn feeds(&self) {
        lock(&self.0).feeding += 1;
    }

    /// Tells that a claimed split is read and decoded, and whether it gave any piece.
    pub(crate) fn close(&self, fed: bool) {
        let mut state = lock(&self.0);
        state.open -= 1;
        state.feeding -= usize::from(fed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;

    /// What is claimed, and the place behind it; the same place twice where one has to wait.
    type Claimed = Option<(ClaimPlace, ClaimPlace)>;

    fn claimed<F>(claim: Result<Claim<F>, Infallible>) -> Claimed {
        match claim.unwrap_or_else(|never| match never {}) {
            Claim::Stretch { place, next, .. } => Some((place, next)),
            Claim::Split { split, next } => Some(((split, 0), next)),
            Claim::Wait(place) => Some((place, place)),
            Claim::Over => None,
        }
    }

    fn split(split: usize) -> Claimed {
        Some(((split, 0), (split + 1, 0)))
    }

    fn wait(place: ClaimPlace) -> Claimed {
        Some((place, place))
    }

    #[test]
    fn splits_are_handed_out_in_order_as_parsers_get_hungry() {
        let claims = Claims::<()>::default();
        let claim = |hungry| claimed(claims.claim(4, 3, hungry, |_, _| true, |_| Ok(None)));
        assert_eq!(claim(false), split(0), "nothing else is open");
        assert_eq!((claim(false), claim(true)), (wait((1, 0)), wait((1, 0))), "one is coming");
        claims.feeds();
        assert_eq!((claim(false), claim(true)), (wait((1, 0)), split(1)));
        claims.feeds();
        assert_eq!(claim(true), split(2));
        claims.feeds();
        assert_eq!(claim(true), wait((3, 0)), "as many are open as may be");
        claims.close(true);
        assert_eq!((claim(true), claim(true)), (split(3), None));
        // The last gave no piece.
        claims.close(false);
        claims.close(true);
        claims.close(true);
        assert_eq!(claim(false), None);
    }

    #[test]
    fn shared_files_are_handed_out_in_stretches() {
        let claims = Claims::default();
        // The first and the last are such files.
        let open = |split: usize| {
            Ok((split != 1).then(|| SharedSplit { file: Arc::new(split), stretches: 2 }))
        };
        let claim = |may: bool| {
            let claim = claims.claim(3, 2, true, |_, _| may, open);
            if let Ok(Claim::Stretch { file, place, .. }) = &claim {
                assert_eq!(**file, place.0);
            }
            claimed(claim)
        };
        assert_eq!(claim(false), wait((0, 0)));
        assert_eq!(claim(true), Some(((0, 0), (0, 1))));
        assert_eq!(claim(false), wait((0, 1)));
        assert_eq!(claim(true), Some(((0, 1), (1, 0))));
        assert_eq!((claim(false), claim(false)), (split(1), wait((2, 0))), "one is for one");
        assert_eq!(claim(true), Some(((2, 0), (2, 1))));
        assert_eq!((claim(true), claim(false)), (Some(((2, 1), (3, 0))), None));
    }
}
