//! Tests about the sources themselves: who depends on whom, where versions stand, how long files are, and that generated files are
//! what the generator gives. All of them are in `tests/`.
