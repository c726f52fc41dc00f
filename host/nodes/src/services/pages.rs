//! Answers to Browse that were given before, so that what everybody looks at is encoded once.
//!
//! Owns a fixed number of places; each holds the BrowseResult of one BrowseDescription for callers with the same rights. It hangs on the
//! [`Graph`](crate::graph::Graph), which never changes: what is true of a graph once is true of it for ever, and another graph starts anew. Only the rights
//! that namespaces grant may change meanwhile, so the version of those belongs to the question. It must not know what an answer says.
//!
//! An answer gets a place when it was asked for twice in a row there, so that a client that walks through the whole address space, and asks for
//! everything once, costs no copy and drives nothing out.

use std::hash::{BuildHasher, Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwapOption;
use hashbrown::DefaultHashBuilder;

use crate::manager::Caller;

/// Places of one graph. A power of two.
const PLACES: usize = 256;
/// Longer answers are made every time, in bytes: the places of a graph hold no more than 4 MiB.
const LONGEST: usize = 16 * 1024;

/// What is asked, and by whom.
#[derive(Clone, Copy)]
pub(super) struct Question<'a> {
    pub(super) caller: &'a Arc<Caller>,
    /// Most references in the answer.
    pub(super) limit: u32,
    /// The encoded BrowseDescription.
    pub(super) operation: &'a [u8],
    /// The version of the rights that namespaces grant, from before the nodes are looked at.
    pub(super) rights: u64,
}

#[derive(Debug)]
struct Page {
    caller: Arc<Caller>,
    limit: u32,
    rights: u64,
    operation: Box<[u8]>,
    result: Box<[u8]>,
}

impl Page {
    fn answers(&self, question: &Question<'_>) -> bool {
        self.limit == question.limit
            && self.rights == question.rights
            && *self.operation == *question.operation
            && (Arc::ptr_eq(&self.caller, question.caller) || sees_the_same(&self.caller, question.caller))
    }
}

/// Whether two callers have the same rights to see nodes, and get the same texts.
fn sees_the_same(one: &Caller, other: &Caller) -> bool {
    one.security_mode == other.security_mode && one.roles == other.roles && one.locales == other.locales
}

#[derive(Debug, Default)]
struct Place {
    /// Hash of the question that was asked last and had no answer here.
    asked: AtomicU64,
    page: ArcSwapOption<Page>,
}

/// See the module text.
#[derive(Debug, Default)]
pub(crate) struct Pages {
    /// Made at the first Browse.
    places: OnceLock<Box<[Place]>>,
    hasher: DefaultHashBuilder,
}

/// What became of a look.
pub(super) enum Looked {
    /// The answer was handed out.
    Found,
    /// There is none, and none is wanted.
    Missing,
    /// There is none; to be kept under this number.
    Wanted(u64),
}

impl Pages {
    /// Hands the encoded BrowseResult that was kept to `found`.
    pub(super) fn look(&self, question: &Question<'_>, found: impl FnOnce(&[u8])) -> Looked {
        let hash = self.hash(question);
        let Some(place) = self.place(hash) else {
            return Looked::Missing;
        };
        match &*place.page.load() {
            Some(page) if page.answers(question) => {
                found(&page.result);
                return Looked::Found;
            }
            _ => {}
        }
        if place.asked.swap(hash, Ordering::Relaxed) == hash {
            Looked::Wanted(hash)
        } else {
            Looked::Missing
        }
    }

    /// Keeps an encoded BrowseResult for who asks the same. `number` is what [`look`](Self::look) answered.
    pub(super) fn keep(&self, number: u64, question: &Question<'_>, result: &[u8]) {
        if result.len() > LONGEST {
            return;
        }
        let page = Page {
            caller: Arc::clone(question.caller),
            limit: question.limit,
            rights: question.rights,
            operation: question.operation.into(),
            result: result.into(),
        };
        if let Some(place) = self.place(number) {
            place.page.store(Some(Arc::new(page)));
        }
    }

    fn place(&self, hash: u64) -> Option<&Place> {
        let make = || (0..PLACES).map(|_| Place::default()).collect();
        let index = usize::try_from(hash % PLACES as u64).unwrap_or(0);
        self.places.get_or_init(make).get(index)
    }

    /// Callers with different rights may meet in a place; that is told by comparing.
    fn hash(&self, question: &Question<'_>) -> u64 {
        let mut hasher = self.hasher.build_hasher();
        question.operation.hash(&mut hasher);
        question.limit.hash(&mut hasher);
        question.caller.security_mode.0.hash(&mut hasher);
        for role in question.caller.roles.iter() {
            role.id.hash(&mut hasher);
        }
        hasher.finish()
    }
}

#[cfg(test)]
mod tests {
    use backplane_types::{MessageSecurityMode, NodeId};

    use super::*;
    use crate::manager::Role;

    fn caller(roles: &[u32], security_mode: MessageSecurityMode) -> Arc<Caller> {
        let role = |id: &u32| Role {
            id: NodeId::numeric(0, *id),
            name: "role".into(),
        };
        Arc::new(Caller {
            number: 1,
            client: "client".into(),
            user: None,
            roles: roles.iter().map(role).collect(),
            locales: Arc::new([]),
            isolation_owner: "".into(),
            security_mode,
        })
    }

    fn ask(pages: &Pages, question: &Question<'_>) -> Option<Vec<u8>> {
        let mut answer = None;
        pages.look(question, |result| answer = Some(result.to_vec()));
        answer
    }

    #[test]
    fn an_answer_is_kept_when_it_was_asked_for_twice() {
        let pages = Pages::default();
        let caller = caller(&[1], MessageSecurityMode::NONE);
        let question = Question {
            caller: &caller,
            limit: 10,
            operation: b"what",
            rights: 0,
        };
        assert!(matches!(pages.look(&question, |_| {}), Looked::Missing));
        let Looked::Wanted(number) = pages.look(&question, |_| {}) else {
            panic!("the second look wants it")
        };
        pages.keep(number, &question, b"this");
        assert_eq!(ask(&pages, &question).as_deref(), Some(&b"this"[..]));
    }

    /// Whatever their hashes are.
    #[test]
    fn another_question_or_another_right_gets_no_answer() {
        let mine = caller(&[1, 2], MessageSecurityMode::SIGN);
        let page = Page {
            caller: Arc::clone(&mine),
            limit: 10,
            rights: 0,
            operation: b"what"[..].into(),
            result: b"this"[..].into(),
        };
        let ask = |caller: &Arc<Caller>, limit, operation, rights| {
            page.answers(&Question {
                caller,
                limit,
                operation,
                rights,
            })
        };
        let answers = |caller: &Arc<Caller>, limit, operation| ask(caller, limit, operation, 0);
        assert!(!ask(&mine, 10, b"what", 1));
        assert!(answers(&mine, 10, b"what"));
        assert!(answers(&caller(&[1, 2], MessageSecurityMode::SIGN), 10, b"what"));
        assert!(!answers(&mine, 11, b"what"));
        assert!(!answers(&mine, 10, b"else"));
        assert!(!answers(&caller(&[1], MessageSecurityMode::SIGN), 10, b"what"));
        assert!(!answers(&caller(&[1, 2], MessageSecurityMode::NONE), 10, b"what"));
    }

    #[test]
    fn long_answers_are_not_kept() {
        let pages = Pages::default();
        let caller = caller(&[], MessageSecurityMode::NONE);
        let question = Question {
            caller: &caller,
            limit: 0,
            operation: b"what",
            rights: 0,
        };
        pages.keep(pages.hash(&question), &question, &vec![0; LONGEST + 1]);
        assert_eq!(ask(&pages, &question), None);
        pages.keep(pages.hash(&question), &question, &vec![0; LONGEST]);
        assert_eq!(ask(&pages, &question).map(|answer| answer.len()), Some(LONGEST));
    }
}
