//! Which split of the input does a worker read next? They are handed out in order, and no sooner than
//! parsers need them: what comes from a later split waits for all of the earlier ones.

use std::sync::{Mutex, MutexGuard};

/// Hands out splits in order.
#[derive(Default)]
pub struct Claims(Mutex<ClaimState>);

#[derive(Default)]
struct ClaimState {
    next: usize,
    open: usize,
    /// Open splits that have fed a parser.
    feeding: usize,
}

/// What a worker that reads nothing is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// Read this split.
    Split(usize),
    /// Enough are open; no split before this one will be claimed.
    Wait(usize),
    /// All are claimed.
    Over,
}

impl Claims {
    fn state(&self) -> MutexGuard<'_, ClaimState> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Claims the next split if parsers are `hungry` or nothing else is open. A few may be on their
    /// way to the parsers at a time, for files may be small.
    pub fn claim(&self, splits: usize, most_open: usize, hungry: bool) -> Claim {
        let mut state = self.state();
        let coming = state.open - state.feeding;
        let wanted = state.open == 0 || hungry && coming < most_open.div_ceil(4);
        if state.next == splits {
            Claim::Over
        } else if !wanted || state.open == most_open {
            Claim::Wait(state.next)
        } else {
            state.open += 1;
            state.next += 1;
            Claim::Split(state.next - 1)
        }
    }

    /// Tells that a claimed split gives its first piece.
    pub fn feeds(&self) {
        self.state().feeding += 1;
    }

    /// Tells that a claimed split is read and out of its decoder; whether it gave any piece.
    pub fn close(&self, fed: bool) {
        let mut state = self.state();
        state.open -= 1;
        state.feeding -= usize::from(fed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_are_handed_out_in_order_as_parsers_get_hungry() {
        let claims = Claims::default();
        let claim = |hungry| claims.claim(4, 3, hungry);
        assert_eq!(claim(false), Claim::Split(0), "nothing else is open");
        assert_eq!((claim(false), claim(true)), (Claim::Wait(1), Claim::Wait(1)), "one is coming");
        claims.feeds();
        assert_eq!((claim(false), claim(true)), (Claim::Wait(1), Claim::Split(1)));
        claims.feeds();
        assert_eq!(claim(true), Claim::Split(2));
        claims.feeds();
        assert_eq!(claim(true), Claim::Wait(3), "as many are open as may be");
        claims.close(true);
        assert_eq!((claim(true), claim(true)), (Claim::Split(3), Claim::Over));
        // The last gave no piece.
        claims.close(false);
        claims.close(true);
        claims.close(true);
        assert_eq!(claim(false), Claim::Over);
    }
}
