//! Bad parameters of `lab` get one clear sentence on stderr, nothing on stdout, and exit code 2.

mod common;

use common::sigmalock;

/// Every line, and the sentence it is answered with.
const BAD: &[(&str, &str)] = &[
    ("lab", "a command is missing; `sigmalock lab --help` lists them"),
    ("lab zebra", "there is no command `zebra`; `sigmalock lab --help` lists them"),
    ("lab torture --sed 0..3", "there is no `--sed`; did you mean `--seeds`?"),
    ("lab torture surprise", "there is no `surprise` here"),
    ("lab torture --seeds", "--seeds needs a value"),
    ("lab torture --seeds 0..1 --seeds 1..2", "--seeds is given twice"),
    // Quorums.
    ("lab torture --n 3 --m 4", "--n 3 --m 4: a quorum of 4 cannot be had from 3 replicas"),
    (
        "lab torture --n 4 --m 2",
        "--n 4 --m 2: a quorum of 2 of 4 replicas is not more than half, so two clients could win at once",
    ),
    ("lab torture --n 0 --m 0", "--n 0 --m 0: a lock has between 1 and 1024 replicas, not 0"),
    ("lab torture --n -5 --m 3", "--n -5: this should be a whole number, at most 1024"),
    ("lab torture --n 99999 --m 3", "--n 99999: this should be a whole number, at most 1024"),
    ("lab torture --n 5", "--m is missing"),
    ("lab sweep --rate 1 --n 3 --m 4", "--n 3 --m 4: a quorum of 4 cannot be had from 3 replicas"),
    // Names.
    (
        "lab torture --protocol paxos",
        "--protocol paxos: there is no such protocol; there are: sigma, strawman, views, and all",
    ),
    (
        "lab sweep --rate 1 --protocol sigma,paxos",
        "--protocol paxos: there is no such protocol; there are: sigma, strawman, views, and all",
    ),
    (
        "lab torture --variant new",
        "--variant new: there is no such variant; there are: literal, shipped",
    ),
    (
        "lab torture --protocol strawman --variant literal --mutant reuses-tokens",
        "--mutant reuses-tokens: only what is shipped has rules to break, not the literal strawman",
    ),
    ("lab torture --protocol views --n 3 --m 2", "--n: views guards no locks"),
    ("lab torture --protocol views --modes", "--modes: views guards no locks"),
    ("lab torture --protocol views --variant literal", "--variant literal: there is no such views"),
    (
        "lab torture --protocol views --membership open",
        "--membership open: the shipped views runs with agreed",
    ),
    (
        "lab sweep --rate 1 --protocol views",
        "views guards no locks, so there is nothing to measure",
    ),
    ("lab compare --protocols views", "views guards no locks, so there is nothing to measure"),
    // Seeds.
    ("lab torture --seeds 7", "--seeds 7: seeds are given as a range A..B, B not included"),
    ("lab torture --seeds 7..7", "--seeds 7..7: this range of seeds is empty; B is not included"),
    ("lab torture --seeds 9..3", "--seeds 9..3: this range of seeds runs backwards"),
    ("lab torture --seeds -9..3", "--seeds -9..3: a seed is a whole number below 2^64"),
    ("lab sweep --rate 1 --seed x", "--seed x: a seed is a whole number below 2^64"),
    // Counts, rates and probabilities.
    ("lab torture --jobs 0", "--jobs 0: this should be a whole number, at least 1"),
    ("lab sweep --clients 0", "--clients 0: this should be a whole number between 1 and 20000"),
    ("lab sweep --clients -3", "--clients -3: this should be a whole number between 1 and 20000"),
    (
        "lab sweep --clients 20001",
        "--clients 20001: this should be a whole number between 1 and 20000",
    ),
    (
        "lab sweep --rate 10001",
        "--rate 10001: a rate should be above 0 and at most 10000 requests per second",
    ),
    (
        "lab sweep --rate -1",
        "--rate -1: a rate should be above 0 and at most 10000 requests per second",
    ),
    (
        "lab sweep --rate 1,NaN",
        "--rate NaN: a rate should be above 0 and at most 10000 requests per second",
    ),
    (
        "lab sweep --rate 0",
        "--rate 0: a rate should be above 0 and at most 10000 requests per second",
    ),
    ("lab sweep", "either --rate R[,R…] or --clients K is needed"),
    ("lab sweep --rate 1 --clients 2", "--rate and --clients exclude each other"),
    ("lab sweep --rate 1 --loss 1.5", "--loss 1.5: a probability is a number between 0 and 1"),
    ("lab sweep --rate 1 --dup -0.1", "--dup -0.1: a probability is a number between 0 and 1"),
    ("lab sweep --rate 1 --loss NaN", "--loss NaN: a probability is a number between 0 and 1"),
    // Durations.
    (
        "lab sweep --rate 1 --duration 10",
        "--duration 10: a duration is a number with a unit, such as 100ms, 10s or 5m",
    ),
    (
        "lab sweep --rate 1 --cs -1s",
        "--cs -1s: a duration is a number with a unit, such as 100ms, 10s or 5m",
    ),
    ("lab sweep --rate 1 --warmup 500y", "--warmup 500y: a duration is at most a year"),
    (
        "lab sweep --rate 1 --duration 0s",
        "--duration 0s: this duration must be longer than nothing",
    ),
    (
        "lab sweep --rate 1 --replica-life 0s",
        "--replica-life 0s: this duration must be longer than nothing",
    ),
    ("lab sweep --rate 1 --back-off 5s", "--back-off 5s: this is a range of durations, LOW..HIGH"),
    (
        "lab sweep --rate 1 --back-off 5s..1s",
        "--back-off 5s..1s: this range of durations runs backwards",
    ),
    // Figures.
    (
        "lab figures --only sigma-fig9",
        "--only sigma-fig9: there is no such figure; there are: sigma-fig2, sigma-fig3, sigma-fig7, \
         sigma-fig8, sigma-messages",
    ),
    ("lab figures --jobs 0", "--jobs 0: this should be a whole number, at least 1"),
    ("lab figures --seed -1", "--seed -1: a seed is a whole number below 2^64"),
    // Plans.
    ("lab plan", "either --target P (or --nines K) or --n N --m M is needed"),
    (
        "lab plan --target 2",
        "--target 2: a target is a probability above 0 and below 1, such as 1e-9",
    ),
    ("lab plan --target 1e-9 --nines 9", "--target and --nines exclude each other"),
    ("lab plan --nines 0", "--nines 0: this should be a number above 0 and at most 300"),
    ("lab plan --nines NaN", "--nines NaN: this should be a number above 0 and at most 300"),
    (
        "lab plan --nines 9 --peers 0",
        "--peers 0: this should be a whole number between 1 and 100000",
    ),
    (
        "lab plan --nines 9 --life 10s --hold 10s",
        "who holds a lock for 10s among peers that live 10s outlives them: choose shorter",
    ),
    ("lab plan --nines 9 --hold 0s", "--hold 0s: this duration must be longer than nothing"),
    ("lab plan --n 4 --m 5", "--n 4 --m 5: a quorum of 5 cannot be had from 4 replicas"),
    // Traces.
    ("lab trace", "FILE is missing"),
    ("lab trace --seed 1 --seeds 1..2", "--seed and --seeds exclude each other"),
    ("lab trace x.txt --seed 1", "FILE and --seed exclude each other"),
    ("lab trace nowhere.txt", "cannot read nowhere.txt: No such file or directory (os error 2)"),
    (
        "lab trace Cargo.toml",
        "Cargo.toml: line 1: `[package]` is no statement; there are: protocol P [VARIANT] | replicas N, quorum M | \
         latency MODEL | durable | agents, K entries per grant | link X -> Y takes D | \
         every KIND [from X] [to Y] FATE | at T X DEED | end at T",
    ),
    ("lab trace --seed 1 --window 5s", "--window 5s: this is a range of durations, LOW..HIGH"),
    (
        "lab trace --seed 1 --window 5s..1s",
        "--window 5s..1s: this range of durations runs backwards",
    ),
    ("lab trace --seed 1 --steps 0", "--steps 0: this should be a whole number between 1 and 2000"),
    (
        "lab trace --seed 1 --protocol all",
        "--protocol all: there is no such protocol; there are: sigma, strawman, views",
    ),
    (
        "lab trace --seed 1 --protocol strawman --membership open",
        "--membership open: the shipped strawman runs with fixed or agreed",
    ),
    // Comparisons.
    (
        "lab compare --protocols paxos",
        "--protocols paxos: there is no such protocol; there are: sigma, strawman, views; or all",
    ),
    (
        "lab compare --protocols sigma:new",
        "--protocols sigma:new: there is no such variant; there are: literal, shipped; or all",
    ),
    ("lab compare --clients 0", "--clients 0: this should be a whole number between 1 and 20000"),
    // Delays.
    (
        "lab sweep --rate 1 --latency 100ms",
        "--latency 100ms: `100ms` is no latency model: write constant:D, uniform:LOW..HIGH, \
         lognormal:MEDIAN,SIGMA or map:BASE,PER_UNIT,JITTER",
    ),
    (
        "lab sweep --rate 1 --latency uniform:9ms..1ms",
        "--latency uniform:9ms..1ms: the latency interval 9ms..1ms is empty: the first bound should be \
         the smaller",
    ),
];

#[test]
fn an_unknown_mutant_is_answered_with_those_there_are() {
    let ran = sigmalock("lab torture --protocol sigma --mutant nobody");
    let (given, known) = ran.stderr.split_once("; there are: ").expect(&ran.stderr);
    assert_eq!(given, "sigmalock: --mutant nobody: there is no mutant `nobody` of sigma");
    let listed = sigmalock("lab mutants --list").stdout;
    assert_eq!(
        known.trim_end().split(", ").collect::<Vec<_>>(),
        listed.lines().collect::<Vec<_>>()
    );
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""));
}

#[test]
fn every_bad_parameter_gets_its_sentence_and_exit_code_2() {
    for (line, sentence) in BAD {
        let ran = sigmalock(line);
        assert_eq!(ran.stderr, format!("sigmalock: {sentence}\n"), "sigmalock {line}");
        assert_eq!(ran.code, Some(2), "sigmalock {line}");
        assert_eq!(ran.stdout, "", "sigmalock {line}");
    }
}
