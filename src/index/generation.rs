//! The lead is writing this file on main; see LEAD-NOTE.md in the root of this worktree. Do not write it here.
