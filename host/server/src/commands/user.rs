//! `backplane user`.

use std::io::Read;

use super::{Failure, Outcome};
use crate::cli::UserCommand;
use crate::users;

/// Longest password, bytes.
const PASSWORD: u64 = 1_024;

pub(super) fn run(command: &UserCommand) -> Outcome {
    match command {
        UserCommand::Hash => {
            let mut password = String::new();
            std::io::stdin()
                .take(PASSWORD)
                .read_to_string(&mut password)
                .map_err(Failure::other)?;
            let password = password.trim_end_matches(['\r', '\n']);
            if password.is_empty() {
                return Err(Failure::usage("no password on standard input"));
            }
            println!("{}", users::hash_password(password).map_err(Failure::other)?);
            Ok(())
        }
    }
}
