//! The order on the wire, whatever the order in which answers come: immediate ones, late ones, long ones and renewals at random.

use std::collections::VecDeque;

use backplane_types::MessageSecurityMode;
use proptest::prelude::{ProptestConfig, Strategy, prop, prop_oneof, proptest};

use super::{RawChunk, Seen, Setup, Wire, all_securities, chunks, u32_at};
use crate::header::ChunkType;

#[derive(Clone, Debug)]
enum Step {
    /// A request that is answered in its turn, with so many bytes.
    Immediate(usize),
    /// A request whose answer comes later.
    Late,
    /// A late answer: which of those that wait, and its length.
    Answer(prop::sample::Index, usize),
    /// The client asks for a new token.
    Renew,
    /// The work of a renewal is done.
    Renewed,
    /// What was sent arrives at the client.
    Arrive,
    /// One of the client's messages in several chunks, with a renewal in between if none is under way.
    Pieces(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let length = || prop_oneof![4 => 0_usize..300, 1 => 8_000_usize..40_000];
    let step = prop_oneof![
        4 => length().prop_map(Step::Immediate),
        3 => prop::strategy::Just(Step::Late),
        4 => (proptest::prelude::any::<prop::sample::Index>(), length()).prop_map(|(which, length)| Step::Answer(which, length)),
        1 => prop::strategy::Just(Step::Renew),
        2 => prop::strategy::Just(Step::Renewed),
        2 => prop::strategy::Just(Step::Arrive),
        1 => (2_usize..5).prop_map(Step::Pieces),
    ];
    prop::collection::vec(step, 1..60)
}

struct Run {
    wire: Wire,
    /// Requests that wait for a late answer.
    waiting: Vec<u32>,
    /// What the client has to get, in this order; renewals in between.
    expected: VecDeque<(u32, usize)>,
    /// Everything the server has sent.
    sent: Vec<u8>,
    mode: MessageSecurityMode,
}

impl Run {
    fn request(&mut self) -> u32 {
        let wire = &mut self.wire;
        let id = wire.client.send(wire.now, b"request", &mut wire.to_server).unwrap();
        self.take();
        id
    }

    /// The server takes what it may: nothing while a renewal is worked on.
    fn take(&mut self) {
        for seen in self.wire.serve() {
            assert!(matches!(seen, Seen::Message(..)), "{seen:?}");
        }
    }

    fn answer(&mut self, id: u32, length: usize) {
        let wire = &mut self.wire;
        wire.server
            .send(wire.now, id, &vec![length as u8; length], &mut wire.to_client)
            .unwrap();
        self.expected.push_back((id, length));
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Immediate(length) => {
                let id = self.request();
                self.answer(id, *length);
            }
            Step::Late => {
                let id = self.request();
                self.waiting.push(id);
            }
            Step::Answer(which, length) => {
                if !self.waiting.is_empty() {
                    let id = self.waiting.swap_remove(which.index(self.waiting.len()));
                    self.answer(id, *length);
                }
            }
            Step::Renew => {
                self.wire.client.open(self.wire.now, &mut self.wire.to_server).unwrap();
                self.take();
            }
            Step::Renewed => self.finish_renewal(),
            Step::Arrive => self.arrive(),
            Step::Pieces(count) => {
                for index in 0..*count {
                    let last = index + 1 == *count;
                    let kind = if last {
                        ChunkType::Final
                    } else {
                        ChunkType::Intermediate
                    };
                    let chunk = RawChunk::new(kind, 999, b"piece").seal(self.wire.client.secure(), self.wire.now);
                    self.wire.to_server.extend_from_slice(&chunk);
                    if index == 0 {
                        self.wire.client.open(self.wire.now, &mut self.wire.to_server).unwrap();
                    }
                }
                self.take();
            }
        }
    }

    fn finish_renewal(&mut self) {
        while self.wire.work.is_some() {
            assert_eq!(self.wire.run_held(), Seen::Opened { renewed: true });
            self.take();
        }
    }

    fn arrive(&mut self) {
        self.sent.extend_from_slice(&self.wire.to_client);
        for seen in self.wire.receive() {
            match seen {
                Seen::Opened { renewed: true } => {}
                Seen::Message(id, body) => {
                    let (expected, length) = self.expected.pop_front().expect("an answer nobody gave");
                    assert_eq!((id, body.len()), (expected, length));
                    assert!(body.iter().all(|byte| *byte == length as u8));
                }
                other => panic!("{other:?}"),
            }
        }
    }

    /// Numbers go up by one from chunk to chunk, and the chunks of a message stand together.
    fn check_wire(&self) {
        if self.mode == MessageSecurityMode::SIGN_AND_ENCRYPT {
            // The client has checked it.
            return;
        }
        let mut last = None;
        let mut inside = None;
        for chunk in chunks(&self.sent) {
            if chunk[..3] == *b"OPN" {
                assert!(inside.is_none(), "a renewal inside a message");
                last = last.map(|last: u32| last + 1);
                continue;
            }
            let (number, id) = (u32_at(&chunk, 16), u32_at(&chunk, 20));
            assert!(last.is_none_or(|last| last + 1 == number));
            last = Some(number);
            assert!(inside.is_none_or(|inside| inside == id));
            inside = (chunk[3] == b'C').then_some(id);
        }
        assert!(inside.is_none());
    }
}

fn run(which: usize, steps: &[Step]) {
    let (policy, mode) = all_securities()[which];
    let mut setup = Setup::new(policy, mode);
    setup.client_limits.receive_buffer_size = 8_192;
    let mut wire = setup.open();
    wire.hold_work = true;
    let mut run = Run {
        wire,
        waiting: Vec::new(),
        expected: VecDeque::new(),
        sent: Vec::new(),
        mode,
    };
    for step in steps {
        run.step(step);
    }
    run.finish_renewal();
    run.arrive();
    for id in std::mem::take(&mut run.waiting) {
        run.answer(id, 7);
    }
    run.arrive();
    assert_eq!(run.expected.len(), 0, "everything arrived");
    run.check_wire();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn any_interleaving_is_in_order_on_the_wire(steps in steps(), which in 0_usize..7) {
        run(which, &steps);
    }
}
