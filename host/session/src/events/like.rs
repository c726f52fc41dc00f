//! Patterns of the Like operator (Part 4, 7.7.3): `%` any text, `_` one character, `[abc]` and `[a-z]` one of a list, `[^abc]` none of it,
//! `\` takes the next character as it is.
//!
//! A pattern becomes a machine whose states are the bits of one number, so that a text costs one step for each of its characters, whatever
//! the pattern: nothing is tried twice.

/// Most characters of a pattern, a list in brackets being one, `%` being none: the states, and the end, fit into 128 bits.
pub(super) const MAX_TOKENS: usize = 127;
/// Most characters and ranges in the brackets of a pattern, all lists together: each character of a text may be compared with all of them.
const MAX_LISTED: usize = 256;

/// A pattern ready to match.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Pattern {
    tokens: Vec<Token>,
    /// States that stay where they are on any character: a `%` stands before their token.
    loops: u128,
}

#[derive(Debug, Clone, PartialEq)]
enum Token {
    One,
    Char(char),
    List { none_of: bool, ranges: Vec<(char, char)> },
}

impl Token {
    fn accepts(&self, c: char) -> bool {
        match self {
            Self::One => true,
            Self::Char(expected) => *expected == c,
            Self::List { none_of, ranges } => {
                ranges.iter().any(|(first, last)| (*first..=*last).contains(&c)) != *none_of
            }
        }
    }
}

impl Pattern {
    /// Reads a pattern; `None` when it or its lists are too long, a bracket is not closed or holds nothing, or nothing follows the last `\`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut pattern = Self {
            tokens: Vec::new(),
            loops: 0,
        };
        let mut chars = text.chars();
        let mut listed = 0;
        while let Some(c) = chars.next() {
            let token = match c {
                '%' => {
                    pattern.loops |= 1 << pattern.tokens.len();
                    continue;
                }
                '_' => Token::One,
                '[' => list(&mut chars, &mut listed)?,
                '\\' => Token::Char(chars.next()?),
                c => Token::Char(c),
            };
            if pattern.tokens.len() == MAX_TOKENS {
                return None;
            }
            pattern.tokens.push(token);
        }
        Some(pattern)
    }

    /// How many of them a character of a text may have to be compared with.
    pub(super) fn states(&self) -> usize {
        self.tokens.len().saturating_add(1)
    }

    /// Whether the whole text fits.
    pub(crate) fn matches(&self, text: &str) -> bool {
        let end = 1_u128 << self.tokens.len();
        let mut states = 1_u128;
        for c in text.chars() {
            let mut next = states & self.loops;
            let mut left = states & (end - 1);
            while left != 0 {
                let state = left.trailing_zeros();
                left &= left - 1;
                if self.tokens.get(state as usize).is_some_and(|token| token.accepts(c)) {
                    next |= 1 << (state + 1);
                }
            }
            states = next;
            if states == 0 {
                return false;
            }
        }
        states & end != 0
    }
}

/// What stands between brackets, the opening one being read; `listed` counts it.
fn list(chars: &mut std::str::Chars<'_>, listed: &mut usize) -> Option<Token> {
    let mut none_of = false;
    let mut ranges: Vec<(char, char)> = Vec::new();
    let mut first = true;
    loop {
        let c = chars.next()?;
        *listed += 1;
        if *listed > MAX_LISTED {
            return None;
        }
        match c {
            '^' if first && !none_of => {
                none_of = true;
                continue;
            }
            ']' => break,
            '-' if !first => {
                let last = match chars.next()? {
                    // A minus at the end stands for itself.
                    ']' => {
                        ranges.push(('-', '-'));
                        break;
                    }
                    '\\' => chars.next()?,
                    last => last,
                };
                let (from, _) = ranges.pop()?;
                ranges.push((from, last));
            }
            '\\' => {
                let c = chars.next()?;
                ranges.push((c, c));
            }
            c => ranges.push((c, c)),
        }
        first = false;
    }
    (!ranges.is_empty()).then_some(Token::List { none_of, ranges })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn like(text: &str, pattern: &str) -> bool {
        Pattern::parse(pattern).unwrap().matches(text)
    }

    #[test]
    fn wildcards() {
        for (text, pattern, matches) in [
            ("main", "%en%", false),
            ("content", "%en%", true),
            ("enter", "%en%", true),
            ("abc", "abc", true),
            ("abc", "ab", false),
            ("abc", "abcd", false),
            ("abc", "a_c", true),
            ("ac", "a_c", false),
            ("", "", true),
            ("", "%", true),
            ("", "_", false),
            ("xyz", "%%%", true),
            ("abbbc", "a%b%c", true),
            ("hat", "[bh]at", true),
            ("cat", "[bh]at", false),
            ("cat", "[^bh]at", true),
            ("hat", "[^bh]at", false),
            ("m7", "m[0-9]", true),
            ("mx", "m[0-9]", false),
            ("z", "[a-fx-z]", true),
            ("-", "[a-]", true),
            ("^", "[a^]", true),
            ("100%", "100\\%", true),
            ("1000", "100\\%", false),
            ("a_b", "a\\_b", true),
            ("axb", "a\\_b", false),
            ("]", "[\\]]", true),
            ("Ärger", "_rger", true),
            ("Ärger", "ärger", false),
        ] {
            assert_eq!(like(text, pattern), matches, "{text} like {pattern}");
        }
    }

    #[test]
    fn broken_patterns() {
        for pattern in ["[", "[abc", "[]", "[^]", "abc\\", "[a-", "[a\\"] {
            assert!(Pattern::parse(pattern).is_none(), "{pattern}");
        }
        assert!(Pattern::parse(&"a%".repeat(MAX_TOKENS)).is_some());
        assert!(Pattern::parse(&"a%".repeat(MAX_TOKENS + 1)).is_none());
        assert!(Pattern::parse(&format!("[{}]", "b".repeat(MAX_LISTED - 1))).is_some());
        assert!(Pattern::parse(&format!("[{}]", "b".repeat(MAX_LISTED))).is_none());
        assert!(Pattern::parse(&"[abc]".repeat(MAX_LISTED / 4 + 1)).is_none());
    }

    /// What makes a matcher that goes back exponential or quadratic.
    #[test]
    fn a_hostile_pattern_costs_what_the_text_is_long() {
        let pattern = format!("{}b", "a%".repeat(100));
        let text = "a".repeat(100_000);
        assert!(!like(&text, &pattern));
    }
}
