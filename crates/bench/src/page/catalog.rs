//! Every report: the question it answers, and the command that makes it, whole and quick.
//!
//! They are plain command lines, so that anybody can run one of them alone. The quick ones ask
//! the same of less data: they show the same picture in minutes, with a wider spread.

use crate::base::threads::up_to_all_cores;

/// Runs of every cell, where a report does not say another number.
const REPEATS: u64 = 5;
const REPEATS_QUICK: u64 = 2;

/// A report of `docs/benchmarks`: its name, its question, and its commands, whole and quick.
///
/// `{late}`, `{own}`, `{one}` and `{threads}` are filled in, and how often each cell runs:
/// `{repeats}` as others do, `{3}` three times, unless one asks for another number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Report {
    pub(crate) name: &'static str,
    pub(crate) question: &'static str,
    full: &'static str,
    quick: &'static str,
}

const fn report(
    name: &'static str,
    question: &'static str,
    full: &'static str,
    quick: &'static str,
) -> Report {
    Report {
        name,
        question,
        full,
        quick,
    }
}

/// What reports share: late samples at pipeline 50, and over history that memory does not hold.
const LATE: &str = "late --start latewood --start redistimeseries --series 32 --samples 25000 \
                    --warmup 2000 --matrix pipeline=50 connections=8";
const LATE_QUICK: &str = "late --start latewood --start redistimeseries --series 32 --samples 5000 \
                          --warmup 500 --matrix pipeline=50 connections=8";
const OWN: &str = "late --start latewood --memory 64mb --series 8";
const ONE: &str = "--matrix pipeline=50 connections=8 encoding=compressed chunk=4096";

/// All of them, in the order they are made.
#[rustfmt::skip]
pub(crate) const REPORTS: [Report; 30] = [
    report("late", "What does a share of late samples cost?",
        "{late} encoding=compressed chunk=4096 policy=LAST repeats={repeats}",
        "{late} encoding=compressed chunk=4096 policy=LAST late=0,10,50,99 repeats={repeats}"),
    report("late-uncompressed", "The same without compression.",
        "{late} encoding=uncompressed chunk=4096 policy=LAST late=0,10,50,99 repeats={repeats}",
        "{late} encoding=uncompressed chunk=4096 policy=LAST late=0,99 repeats={repeats}"),
    report("late-chunk-256", "The same with small chunks.",
        "{late} encoding=compressed chunk=256 policy=LAST late=0,10,99 repeats={repeats}",
        "{late} encoding=compressed chunk=256 policy=LAST late=0,99 repeats={repeats}"),
    report("late-block", "The same when duplicates are refused.",
        "{late} encoding=compressed chunk=4096 policy=BLOCK late=0,10,50,99 repeats={repeats}",
        "{late} encoding=compressed chunk=4096 policy=BLOCK late=0,99 repeats={repeats}"),
    report("late-shapes",
        "The same for samples that are late in other ways: short delays, a device's day at once, \
         a backfill from the newest to the oldest, corrections.",
        "{late} encoding=compressed chunk=4096 policy=LAST late=0,25 \
         shape=delays,device-day,backfill,corrections repeats={repeats}",
        "{late} encoding=compressed chunk=4096 policy=LAST late=0,25 \
         shape=delays,device-day,backfill,corrections repeats={1}"),
    report("late-rules", "The same with one and with five compaction rules on every series.",
        "{late} encoding=compressed chunk=4096 policy=LAST late=0,25,99 rules=0,1,5 repeats={repeats}",
        "{late} encoding=compressed chunk=4096 policy=LAST late=0,99 rules=0,5 repeats={1}"),
    report("late-pipeline-1", "The same for clients that wait for every reply.",
        "late --start latewood --start redistimeseries --series 32 --samples 10000 --matrix \
         late=0,10,99 encoding=compressed chunk=4096 pipeline=1 connections=32 policy=LAST repeats={repeats}",
        "late --start latewood --start redistimeseries --series 32 --samples 2000 --matrix \
         late=0,99 encoding=compressed chunk=4096 pipeline=1 connections=32 policy=LAST repeats={repeats}"),
    report("late-series", "What does TS.ADD take where each sample is for another of 100,000 series?",
        "late --start latewood --start redistimeseries --series 100000 --samples 20 --warmup 5 \
         {one} late=0 policy=LAST repeats={repeats}",
        "late --start latewood --start redistimeseries --series 20000 --samples 20 --warmup 5 \
         {one} late=0 policy=LAST repeats={1}"),
    report("late-history", "The same over history on disk, a small budget for memory.",
        "{own} --samples 400000 --preload 10000000 {one} late=0,25,99 policy=LAST repeats={2}",
        "{own} --samples 100000 --preload 500000 {one} late=0,25 policy=LAST repeats={1}"),
    report("late-history-block", "The same when duplicates are refused.",
        "{own} --samples 400000 --preload 6000000 {one} late=0,10,25 policy=BLOCK repeats={2}",
        "{own} --samples 100000 --preload 300000 {one} late=0,25 policy=BLOCK repeats={1}"),
    report("inprocess", "What does the engine take without sockets?",
        "inprocess --samples 4000000 --repeats {repeats}",
        "inprocess --samples 1000000 --repeats {repeats}"),
    report("inprocess-shapes", "The same for samples that are late in other ways.",
        "inprocess --samples 2000000 --late 0,25 --shape delays,device-day,backfill,corrections --repeats {repeats}",
        "inprocess --samples 500000 --late 0,25 --shape delays,device-day,backfill,corrections --repeats {1}"),
    report("inprocess-threads", "What do more threads bring, up to the cores of the machine?",
        "inprocess --samples 4000000 --late 0,99 --threads {threads} --repeats {repeats}",
        "inprocess --samples 1000000 --late 0,99 --threads {threads} --repeats {repeats}"),
    report("new", "What does a new series cost beside a known one: time, pauses, memory, over the wire?",
        "new --repeats {repeats}",
        "new --series 100000 --grow 300000 --wire 40000 --labels 0,6 --repeats {1}"),
    report("stages", "Where does the time of a write go, and what does it cost to look?",
        "stages --repeats {repeats}",
        "stages --series 50000 --samples 300000 --turn 100000 --pairs 12 --repeats {1}"),
    report("durable",
        "What does the log cost, how long is the longest wait, and how far is `sync` from the disk?",
        "durable --start redistimeseries --start redistimeseries-aof --repeats {repeats}",
        "durable --start redistimeseries --start redistimeseries-aof --samples 40000 \
         --long-samples 500000 --warmup 4000 --sync-samples 1000 --repeats {1}"),
    report("fleet", "What do hundreds of thousands of sensors take, log off and on, over time?",
        "fleet --series 100000 --samples 20000000 --repeats {repeats}",
        "fleet --series 20000 --samples 2000000 --repeats {1}"),
    report("fleet-large", "The same with half a billion samples of 350,000 sensors in 512 MB of memory.",
        "fleet --over wire --samples 500000000 --memory 512mb --repeats {1}",
        "fleet --over wire --series 35000 --samples 5000000 --memory 64mb --repeats {1}"),
    report("recover", "How long until a killed server answers?",
        "recover --series 100000 --samples 20000000 --late 10 --repeats {3}",
        "recover --series 20000 --samples 2000000 --late 10 --repeats {1}"),
    report("recover-flushed", "The same when everything lies in blocks.",
        "recover --series 100000 --samples 20000000 --late 0 --flushed --repeats {3}",
        "recover --series 20000 --samples 2000000 --late 0 --flushed --repeats {1}"),
    report("wear", "How many bytes are written for each that is kept, and how many files are there?",
        "wear --series 10000 --samples 10000000 --repeats {3}",
        "wear --series 1000 --samples 1000000 --repeats {1}"),
    report("mixed", "What do reads cost beside writes, and how fast is everything read?",
        "mixed --series 100000 --samples 20000000 --repeats {3}",
        "mixed --series 10000 --samples 2000000 --seconds 2 --repeats {1}"),
    report("mixed-long", "The same with few long series.",
        "mixed --series 1000 --samples 50000000 --memory 256mb --rate 2000000 --seconds 4 --repeats {1}",
        "mixed --series 1000 --samples 4000000 --rate 2000000 --seconds 2 --repeats {1}"),
    report("size", "What do real measurements take?", "size", "size"),
    report("query", "What do reads over many series and over long ones cost, and an idle series?",
        "query --start latewood --start redistimeseries --repeats {repeats}",
        "query --start latewood --start redistimeseries --wide-series 1000 --long-samples 1000000 \
         --index-series 50000 --idle-series 20000 --seconds 0.3 --repeats {1}"),
    report("soak", "Does anything waver or get lost over time, through stops and kills?",
        "soak --minutes 10", "soak --minutes 1"),
    report("senders", "What do six senders at once take, each with a file, log off and on?",
        "senders --repeats {repeats}", "senders --series 6000 --samples 1200000 --repeats {1}"),
    report("protocols", "What do the same lines cost by each of Latewood's protocols?",
        "lines --start latewood --protocol influx,redis,opentsdb,akumuli,prometheus,otlp \
         --workers 1 --late 0,99 --repeats {3}",
        "lines --start latewood --protocol influx,redis,opentsdb,akumuli,prometheus,otlp \
         --workers 1 --late 0,99 --scale 400 --lines 40000 --repeats {1}"),
    // Last, since it needs peers that not every machine can have.
    report("lines", "What do the same lines cost systems of other protocols?",
        "lines --repeats {3}",
        "lines --scale 400 --lines 100000 --workers 1 --late 0,99 --repeats {1}"),
    // On its own: Prometheus is left alone for over a minute after each load.
    report("lines-prometheus", "What do the same lines cost Prometheus, by remote write?",
        "lines --start latewood,prometheus --protocol prometheus --workers 1 --late 0,10 --repeats {1}",
        "lines --start latewood,prometheus --protocol prometheus --scale 400 --lines 100000 \
         --workers 1 --late 0 --repeats {1}"),
];

impl Report {
    /// The command line without the program and its files, each cell run as often as `asked`, else
    /// as the report needs.
    pub(crate) fn command(&self, quick: bool, asked: Option<u64>) -> String {
        let (words, late, usual) = match quick {
            true => (self.quick, LATE_QUICK, REPEATS_QUICK),
            false => (self.full, LATE, REPEATS),
        };
        let words = words
            .replace("{late}", late)
            .replace("{own}", OWN)
            .replace("{one}", ONE)
            .replace("{threads}", &up_to_all_cores())
            .replace("{repeats}", &asked.unwrap_or(usual).to_string());
        let fewer = |words: String, own: u64| {
            words.replace(&format!("{{{own}}}"), &asked.unwrap_or(own).to_string())
        };
        (1..REPEATS).fold(words, fewer)
    }
}
