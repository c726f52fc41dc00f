//! Faults that are put between a core and what it speaks to, to prove that the checkers see them.

/// One fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mutant {
    /// The last notification of a message is lost.
    LosesNotification,
    /// The first notification of a message comes twice.
    DoublesNotification,
    /// A whole Publish response is sent to the client once more, in answer to the next request.
    DoublesPublish,
    /// A NotificationMessage reaches the client with the next sequence number.
    SkipsSequenceNumber,
    /// A message that is kept is missing in the list of available ones.
    HidesAvailable,
    /// Republish answers with another message than the one that was sent.
    RepublishesWrong,
    /// A keep-alive is not sent.
    SwallowsKeepAlive,
    /// A subscription is kept alive though its client is silent.
    NeverExpires,
    /// A response is sent twice.
    AnswersTwice,
    /// A request is not answered.
    NeverAnswers,
    /// A change of a value is not seen by sampling.
    OverlooksChange,
    /// A value is another one when it comes out of sampling.
    FalsifiesValue,
    /// Samples of one item are left out.
    SkipsSamples,
    /// The core keeps more Publish requests than the limit says.
    KeepsTooManyRequests,
    /// What belongs to a subscription stays when it is over.
    Leaks,
    /// Two chunks leave a connection in the wrong order.
    SwapsChunks,
    /// After a reload every item reports its value again.
    ResendsAfterReload,
    /// Managers are asked with the tags of the generation before.
    AsksWithOldTags,
}

impl Mutant {
    /// All of them.
    pub const ALL: [Self; 18] = [
        Self::LosesNotification,
        Self::DoublesNotification,
        Self::DoublesPublish,
        Self::SkipsSequenceNumber,
        Self::HidesAvailable,
        Self::RepublishesWrong,
        Self::SwallowsKeepAlive,
        Self::NeverExpires,
        Self::AnswersTwice,
        Self::NeverAnswers,
        Self::OverlooksChange,
        Self::FalsifiesValue,
        Self::SkipsSamples,
        Self::KeepsTooManyRequests,
        Self::Leaks,
        Self::SwapsChunks,
        Self::ResendsAfterReload,
        Self::AsksWithOldTags,
    ];
}
