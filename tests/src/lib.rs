//! Tests of the rooms together: of the house they make, and of a batch's way through it.
