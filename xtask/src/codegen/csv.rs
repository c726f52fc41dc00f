//! Comma-separated values with optional double quotes. Knows no columns.

/// The rows of a document; a byte order mark and empty lines are skipped.
pub(crate) fn rows(document: &str) -> Vec<Vec<String>> {
    let document = document.trim_start_matches('\u{feff}');
    let mut rows = Vec::new();
    let mut row = Vec::new();
    let mut field = String::new();
    let mut quoted = false;
    let mut characters = document.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '"' if quoted && characters.peek() == Some(&'"') => {
                characters.next();
                field.push('"');
            }
            '"' => quoted = !quoted,
            ',' if !quoted => row.push(std::mem::take(&mut field)),
            '\r' if !quoted => {}
            '\n' if !quoted => {
                row.push(std::mem::take(&mut field));
                rows.push(std::mem::take(&mut row));
            }
            other => field.push(other),
        }
    }
    if !field.is_empty() || !row.is_empty() {
        row.push(field);
        rows.push(row);
    }
    rows.retain(|row| row.iter().any(|field| !field.is_empty()));
    rows
}

#[cfg(test)]
mod tests {
    use super::rows;

    #[test]
    fn quotes_and_line_ends() {
        let parsed = rows("\u{feff}a,1,\"x, \"\"y\"\"\"\r\n\r\nb,2,");
        assert_eq!(parsed, [["a", "1", "x, \"y\""], ["b", "2", ""]]);
    }
}
