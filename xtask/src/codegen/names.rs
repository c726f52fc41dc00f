//! Names of the standard turned into Rust identifiers.

/// Splits a name into words: at a change from small to capital letters, before the last capital of a run, and where a
/// digit is followed by a capital. `UInt` and `SByte` count as one word's beginning.
fn words(name: &str) -> Vec<String> {
    let name = name.replace("UInt", "Uint").replace("SByte", "Sbyte");
    let characters: Vec<char> = name.chars().collect();
    let mut words = vec![String::new()];
    for (index, &character) in characters.iter().enumerate() {
        if !character.is_ascii_alphanumeric() {
            words.push(String::new());
            continue;
        }
        let before = index.checked_sub(1).and_then(|before| characters.get(before));
        let after = characters.get(index + 1);
        let starts = character.is_ascii_uppercase()
            && match before {
                Some(before) if before.is_ascii_uppercase() => after.is_some_and(|after| after.is_ascii_lowercase()),
                Some(_) => true,
                None => false,
            };
        if starts {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut() {
            word.push(character);
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// `MaxAge` to `max_age`.
pub(crate) fn snake(name: &str) -> String {
    let snake = words(name).join("_").to_ascii_lowercase();
    match snake.as_str() {
        "type" | "match" | "use" | "ref" | "in" | "self" | "move" | "where" | "loop" | "enum" | "struct" => {
            format!("{snake}_")
        }
        _ => snake,
    }
}

/// `MaxAge` to `MAX_AGE`.
pub(crate) fn screaming(name: &str) -> String {
    words(name).join("_").to_ascii_uppercase()
}

#[cfg(test)]
mod tests {
    use super::{screaming, snake};

    #[test]
    fn words_of_the_standard() {
        for (name, expected) in [
            ("MaxAge", "max_age"),
            ("UInt32", "uint32"),
            ("SByte", "sbyte"),
            ("EURange", "eu_range"),
            ("Aes128Sha256", "aes128_sha256"),
            ("UABinaryFileDataType", "ua_binary_file_data_type"),
            ("Type", "type_"),
            ("PriorityValue_DSCP", "priority_value_dscp"),
            ("X", "x"),
        ] {
            assert_eq!(snake(name), expected);
        }
        assert_eq!(screaming("Server_ServerStatus"), "SERVER_SERVER_STATUS");
        assert_eq!(screaming("BadNodeIdUnknown"), "BAD_NODE_ID_UNKNOWN");
    }
}
