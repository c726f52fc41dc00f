//! Rows of AggregateExamples.csv that contradict the text of the standard, or other rows of the same file.

/// Rows of one table, by the timestamp they have in the file, minutes and seconds after 12:00.
pub(crate) struct Rows(
    pub(crate) &'static str,
    pub(crate) &'static str,
    pub(crate) &'static [&'static str],
);

/// Why, and which.
pub(crate) const EXCEPTIONS: &[(&str, &[Rows])] = &[
    (
        "Historian3 says Percent Bad 50, and half of the data or more is Bad: 5.4.3.2.1 makes such a result Bad before it looks at Good \
         data. The rows come out as in the file with Percent Bad 100",
        &[
            Rows("TimeAverage2", "Historian3", &["00:40", "00:45", "01:15", "01:20"]),
            Rows("Total2", "Historian3", &["00:40", "00:45", "01:15", "01:20"]),
            Rows("Count", "Historian3", &["00:32", "01:04"]),
            Rows("NumberOfTransitions", "Historian3", &["00:32", "01:04"]),
        ],
    ),
    (
        "Total is TimeAverage times the interval and always sloped (5.4.3.8). The table of Historian3 is stepped, while that of its \
         TimeAverage is sloped; only the last row agrees",
        &[Rows(
            "Total",
            "Historian3",
            &[
                "00:00", "00:05", "00:10", "00:15", "00:20", "00:25", "00:30", "00:35", "00:40", "00:45", "00:50",
                "00:55", "01:00", "01:05", "01:10", "01:15", "01:20", "01:25",
            ],
        )],
    ),
    (
        "An Uncertain value, 70, is greater than the Good maximum, 30: Uncertain_DataSubNormal (5.4.3.11, 5.4.3.13, 5.4.3.14)",
        &[
            Rows("Maximum", "Historian5", &["01:04"]),
            Rows("MaximumActualTime", "Historian5", &["01:12"]),
            Rows("Range", "Historian5", &["01:04"]),
        ],
    ),
    (
        "The bound at 01:20 is Bad (StartBound of Historian3 in the same file), for an Uncertain value counts as Bad; the three seconds \
         after it are neither Good nor Bad here, although those before it are Bad in the row above",
        &[
            Rows("DurationBad", "Historian3", &["01:20"]),
            Rows("DurationBad", "Historian4", &["01:20"]),
            Rows("PercentBad", "Historian3", &["01:20"]),
            Rows("PercentBad", "Historian4", &["01:20"]),
        ],
    ),
    (
        "WorstQuality2 ignores TreatUncertainAsBad (5.4.3.36), as the rows of Historian3 and Historian4 show; those of Historian2 do not",
        &[Rows("WorstQuality2", "Historian2", &["01:04", "01:20"])],
    ),
];
