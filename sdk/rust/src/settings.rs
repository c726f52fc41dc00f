//! The operator's settings as Rust values. Owns the few lines of JSON that scalar settings need; larger ones are read from [`setting_json`] with a JSON crate of the author's choice.

use crate::backend;

/// A Rust type that a setting can be.
pub trait Setting: Sized {
    /// Reads one JSON value; `None` when it is of another kind.
    fn from_json(json: &str) -> Option<Self>;
}

/// The setting at a dotted path; `None` when it is missing or of another kind.
///
/// ```no_run
/// let period: u64 = backplane_sdk::setting("period_ms").unwrap_or(100);
/// ```
pub fn setting<T: Setting>(path: &str) -> Option<T> {
    let json = backend::settings::get(path)?;
    let setting = T::from_json(json.trim());
    if setting.is_none() {
        crate::warn!("the setting {path} cannot be used: {json}");
    }
    setting
}

/// The setting at a dotted path, as JSON text.
pub fn setting_json(path: &str) -> Option<String> {
    backend::settings::get(path)
}

/// A secret that the operator granted by name. Do not log it.
pub fn secret(name: &str) -> Option<String> {
    backend::settings::secret(name)
}

macro_rules! parsed {
    ($($type:ty),*) => {$(
        impl Setting for $type {
            fn from_json(json: &str) -> Option<Self> {
                json.parse().ok()
            }
        }
    )*};
}

parsed!(bool, i8, u8, i16, u16, i32, u32, i64, u64, usize);

impl Setting for f64 {
    fn from_json(json: &str) -> Option<Self> {
        // Rust also parses "inf" and "nan", which are not JSON.
        json.parse().ok().filter(|number: &f64| number.is_finite())
    }
}

impl Setting for String {
    fn from_json(json: &str) -> Option<Self> {
        let inner = json.strip_prefix('"')?.strip_suffix('"')?;
        let mut text = String::with_capacity(inner.len());
        let mut characters = inner.chars();
        while let Some(character) = characters.next() {
            text.push(match character {
                '"' => return None,
                '\\' => escape(&mut characters)?,
                other => other,
            });
        }
        Some(text)
    }
}

fn escape(characters: &mut std::str::Chars<'_>) -> Option<char> {
    Some(match characters.next()? {
        'n' => '\n',
        't' => '\t',
        'r' => '\r',
        'b' => '\u{8}',
        'f' => '\u{c}',
        'u' => return unicode(characters),
        other @ ('"' | '\\' | '/') => other,
        _ => return None,
    })
}

fn unicode(characters: &mut std::str::Chars<'_>) -> Option<char> {
    let high = four_digits(characters)?;
    if !(0xD800..0xDC00).contains(&high) {
        return char::from_u32(high);
    }
    if characters.next()? != '\\' || characters.next()? != 'u' {
        return None;
    }
    let low = four_digits(characters)?
        .checked_sub(0xDC00)
        .filter(|low| *low < 0x400)?;
    char::from_u32(0x10000 + ((high - 0xD800) << 10) + low)
}

fn four_digits(characters: &mut std::str::Chars<'_>) -> Option<u32> {
    (0..4).try_fold(0, |number, _| Some(number * 16 + characters.next()?.to_digit(16)?))
}

#[cfg(test)]
mod tests {
    use super::Setting;

    #[test]
    fn scalars_are_read_from_json() {
        assert_eq!(f64::from_json("1.5e2"), Some(150.0));
        assert_eq!(f64::from_json("inf"), None);
        assert_eq!(u64::from_json("-1"), None);
        assert_eq!(bool::from_json("true"), Some(true));
        assert_eq!(
            String::from_json(r#""a\n\"\u00e9\ud83d\ude00""#).as_deref(),
            Some("a\n\"é😀")
        );
        assert_eq!(String::from_json(r#""\ud83d""#), None);
        assert_eq!(String::from_json("1"), None);
        assert_eq!(String::from_json("\""), None);
    }
}
