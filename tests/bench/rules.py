#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""Promise: bench/ reads what the programs print, and nothing else; its rules say "differs", "met" and "off" when that is so.
Prints one TAP line a case; exits 1 when one failed."""

import itertools
import os
import sys
import traceback
import xml.dom.minidom

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "bench"))

import rows  # noqa: E402
from kit import chart, floor_check, report, result, rounds, spread  # noqa: E402
from kit.figure import Source  # noqa: E402
from kit.row import Goal, Row  # noqa: E402
from kit.session import Failure  # noqa: E402
from sources import connections, iperf, libfabric, openmpi, own, perftest, rsockets, ucx  # noqa: E402

LATENCY = """---------------------------------------------------------------------------------------
 #bytes #iterations    t_min[cycles]    t_max[cycles]  t_typical[cycles]    t_avg[cycles]    t_stdev[cycles]   99% percentile[cycles]
 8       10000          793.00         15763488.00      1014.00  	       7305.52     	6166.85		1599.00 		2505282.00
---------------------------------------------------------------------------------------
"""
BANDWIDTH = """ #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]
 65536      5000             0.00               129.18             0.246393
 131072     5000             0.00               140.00             0.133514
"""
UCX = """batch,iterations,50.0_percentile_lat,avg_lat,overall_lat,avg_bw,overall_bw,avg_mr,overall_mr
t0,10000,0.166,3.628,3.628,2.10,2.10,275668,275668
t2, 100,23.368,65.150,65.150,15349.13,15349.13,15349,15349
[1795417207.461549] [vm:28352:0]         libperf.c:1080 UCX  ERROR ucp_ep_create() failed: Destination is unreachable
"""
PINGPONG = """Waiting for connection...
bytes   #sent   #ack     total       time     MB/sec    usec/xfer   Mxfers/sec
64      10k     =10k     1.2m        0.05s     27.62       2.32       0.43
"""
THREADS = """1 thread , no thread domain     3.050 M messages/s (3.050 .. 3.050),  327 ns each (327 .. 327)
2 threads, one each             4.900 M messages/s (4.900 .. 4.900),  400 ns each (400 .. 400)
"""


def fails(call, *args):
    try:
        call(*args)
    except Failure:
        return True
    return False


def same(got, wanted):
    assert got == wanted, f"{got!r}, want {wanted!r}"


def reads_perftest():
    same(perftest.column(LATENCY, 8, perftest.TYPICAL), 1014.0)
    same(perftest.column(LATENCY, 8, perftest.MEAN), 7305.52)
    same(perftest.column(BANDWIDTH, 65536, perftest.AVERAGE), 129.18)
    same(perftest.column(BANDWIDTH, 131072, perftest.RATE), 0.133514)


def refuses_perftest_without_figures():
    assert fails(perftest.column, "Couldn't listen to port 18515\n", 8, 4)
    assert fails(perftest.column, LATENCY, 16, 4), "a size that was not measured"
    assert fails(perftest.column, BANDWIDTH.replace("129.18", "nan?"), 65536, 3)
    assert fails(perftest.column, BANDWIDTH.replace("129.18", "0.00"), 65536, 3), "nothing was transferred"
    assert fails(perftest.column, " 8 10000 0.3 0.4\n", 8, perftest.TYPICAL), "a table of other columns"


def reads_ucx():
    lines = ucx.results(UCX)
    same(sorted(lines), ["t0", "t2"])
    same(ucx.Ucx.value(("am_lat", 8), lines["t0"]), 0.166)
    same(round(ucx.Ucx.value(("put_bw", 1 << 20), lines["t2"]), 3), 16.095)
    same(ucx.Ucx.value(("am_rate", 8), lines["t0"]), 0.275668)


def reads_the_others():
    same(libfabric.microseconds(PINGPONG, "64"), 2.32)
    assert fails(libfabric.microseconds, PINGPONG, "128")
    same(openmpi.results("lat:8 0.34\nsome noise here\nbw:64 x\n"), {"lat:8": 0.34})
    same(own.thread_rates(THREADS), {(1, "none"): 3.05, (2, "each"): 4.9})
    same(iperf.received('{"end": {"sum_received": {"bits_per_second": 16e9}}}'), 2.0)
    assert fails(iperf.received, '{"error": "unable to connect"}')
    assert fails(iperf.received, "iperf3: error")


CMTIME = """resolving route
step              total ms     max ms     min us  us / conn
create id    :      116.21      18.10      41.00     116.21
resolve addr :      132.44      14.45      75.00     132.45
resolve route:       27.71       3.41      19.00      27.71
create qp    :        6.40       0.25       3.00       6.40
connect      :      124.83     118.75   20644.00     124.83
disconnect   :       19.47       7.34    1873.00      19.47
"""
RSTREAM = """name      bytes   xfers   iters   total       time     Gb/sec    usec/xfer
custom    64      1       20k     2.4m        0.03s      0.76       0.68
"""


def reads_connections():
    same(round(connections.all_steps(CMTIME), 2), 407.59)
    assert fails(connections.all_steps, CMTIME.split("connect")[0])
    same(connections.said("connect 50.65 us\nwhole 60.5 us\n", "whole"), 60.5)
    assert fails(connections.said, "connect 50.65 us\n", "kept")
    same(rsockets.column(RSTREAM, rsockets.US), 0.68)
    same(rsockets.column(RSTREAM, rsockets.GBITS), 0.76)
    for text in ("", RSTREAM.splitlines()[0], "rconnect: Connection refused"):
        assert fails(rsockets.column, text, rsockets.US)


def brute_chance(a, b):
    """The share of all deals in which the count of won pairs is as far from the middle, or further."""
    values = [*a, *b]
    middle = len(a) * len(b) / 2

    def apart(first):
        rest = [values[i] for i in range(len(values)) if i not in first]
        return abs(sum(values[i] > y for i in first for y in rest) - middle)

    here = apart(range(len(a)))
    deals = list(itertools.combinations(range(len(values)), len(a)))
    return sum(apart(deal) >= here for deal in deals) / len(deals)


def rank_test_is_exact():
    for a, b in (([1, 2, 3, 4, 5], [6, 7, 8, 9, 10]), ([1, 4, 5, 8, 9], [2, 3, 6, 7, 10]), ([1, 2, 3, 4, 7], [5, 6, 8, 9, 10]),
                 ([1, 9], [2, 3, 4, 5, 6])):
        assert abs(spread.chance(a, b) - brute_chance(a, b)) < 1e-12, (a, b)


def verdicts_are_sound():
    apart = [10.0, 10.1, 10.2, 10.3, 10.4]
    same(spread.verdict(apart, [value * 1.2 for value in apart]), "differs")
    same(spread.verdict(apart, [value * 1.2 for value in apart[:4]] + [10.15]), "same")
    same(spread.verdict([100, 100.1, 100.2, 100.3, 100.4], [100.5, 100.6, 100.7, 100.8, 100.9]), "same")  # less than is of interest
    same(spread.verdict([1, 1, 1], [2, 2, 2]), "too few rounds")
    same(spread.verdict([5] * 5, [5] * 5), "same")
    same(spread.verdict([0] * 5, [0] * 5), "same")


def ratios_divide_drift_out():
    same(spread.ratio([{"a": 2, "b": 1}, {"a": 8, "b": 4}, {"a": 2, "b": 1}], "a", "b"), 2.0)
    same(spread.ratio([{"a": 2, "b": 1}, {"a": 8}, {"b": 1}], "a", "b"), 2.0)  # a turn in which one of them is missing says nothing
    same(spread.ratio([{"a": 2, "b": 0}], "a", "b"), None)


class Fake(Source):
    name = "fake"
    units = {"time": "us", "rate": "GB/s", "count": "wakeups"}


def goals_are_judged():
    fake = Fake()
    time, other, better = fake.figure("time", 1), fake.figure("time", 2), fake.figure("time", 3)
    rate, floor = fake.figure("rate", 1), fake.figure("rate", 2)
    turns = [{time.name: 1.0, other.name: 2.0, better.name: 1.25, rate.name: 10.0, floor.name: 20.0}]
    same(Goal(0.7, other).judge(time, turns)["met"], True)
    same(Goal(0.7, other, better).judge(time, turns)["met"], False)  # of the best, which is the smaller time
    same(Goal(0.7, other, better).judge(time, turns)["ratio"], 0.8)
    same(Goal(0.5, floor).judge(rate, turns)["met"], True)
    same(Goal(0.51, floor).judge(rate, turns)["met"], False)
    same(Goal(1.0, fake.figure("time", 9)).judge(time, turns)["met"], None)  # not measured: neither met nor missed
    same(Goal(1.0, other).judge(fake.figure("time", 9), turns)["met"], None)
    count = fake.figure("count")
    same([Goal(0).judge(count, [{count.name: value}])["met"] for value in (0, 1)], [True, False])


def floors_that_are_off_are_told():
    fake = Fake()
    slow, rate = fake.figure("time", 1), fake.figure("rate", 1)
    records = [{"trip us": 0.06, "trips": {slow.name: 10.0, rate.name: 1.2}}]

    def faults(slow_us, gbs, trip=0.06):
        return floor_check.check([slow, rate], {slow.name: [(trip, slow_us)], rate.name: [(trip, gbs)]}, [trip], records)

    same(faults(0.6, 20.0), ([], []))
    same(len(faults(0.75, 20.0)[0]), 0)
    same(len(faults(0.81, 20.0)[0]), 1)
    same([len(part) for part in faults(0.4, 20.0)], [0, 1])  # a fast floor makes no goal easier
    same(len(faults(0.6, 10.0)[0]), 1)
    both = [*records, {"trip us": 0.3, "trips": {slow.name: 2.0}}]  # the cores moved for a turn, and the floor stayed
    told, remarks = floor_check.check([slow], {slow.name: [(0.06, 0.6), (0.3, 0.6), (0.06, 0.6)]}, [0.06, 0.3, 0.06], both)
    same((told, len(remarks)), ([], 1))
    assert "changed their places" in remarks[0]
    same([len(part) for part in faults(3.0, 1.0, 0.3)], [0, 1])  # cores that lie elsewhere: nothing is recorded, and that is said


class Trip(Source):
    """A cache line's trip, as the given places of the cores make it."""

    name = "trip"
    units = {"line": "us"}

    def __init__(self, found):
        super().__init__()
        self.found = iter(found)

    def run(self, session, library, specs):
        return {specs[0]: next(self.found, 0.03)}


class Steady(Source):
    """Counts its calls, and returns their number."""

    name = "steady"
    units = {"time": "us"}

    def __init__(self, batch=False):
        super().__init__()
        self.batch = batch
        self.calls = 0

    def run(self, session, library, specs):
        self.calls += 1
        return {spec: float(self.calls) for spec in specs}


def turns_in_which_cores_moved_are_left_out():
    for moved, turns in ((0, 4), (1, 5), (2, 6), (99, 4 * rounds.MOST)):
        steady = Steady()
        line = Trip([0.03, 0.03, 0.3] * moved).figure("line")  # three trips a turn: before, between and after its two figures
        row = Row("row", steady.figure("time", 1), [Goal(1, steady.figure("time", 2))])
        runs = rounds.Rounds(None, [None], line)
        runs.run([row], 4)
        same((len(runs.turns["row"]), steady.calls), (turns, 2 * turns))
        same(len(runs.judged("row")), 4 if moved < 99 else turns)  # where no turn is settled, all of them are what there is
        final = result.build({}, {}, [row.figure], runs, [row])
        same((final["rows"][0]["measured"], final["rows"][0]["settled"]), (turns, 4 if moved < 99 else 0))
        same("the cores moved" in "\n".join(report.lines(final)), moved == 99)


def figures_without_a_place_need_no_trip():
    steady = Steady()
    steady.placed = False
    runs = rounds.Rounds(None, [None], Trip([0.03, 0.3] * 9).figure("line"))
    runs.run([Row("row", steady.figure("time", 1))], 4)
    same((len(runs.turns["row"]), runs.trips(), len(runs.judged("row"))), (4, [], 4))


def a_row_is_measured_side_by_side():
    """What is compared is measured within one turn, and two builds take turns at being the first."""
    steady = Steady()
    steady.own = True
    row = Row("row", steady.figure("time", 1), [Goal(1, steady.figure("time", 2))])
    runs = rounds.Rounds(None, ["old", "new"])
    runs.run([row], 2)
    found = [[turn.values[(number, figure.name)] for number in (0, 1) for figure in row.figures()] for turn in runs.turns["row"]]
    same(found, [[1, 3, 2, 4], [6, 8, 5, 7]])
    same(runs.values(row.figure.name, 1), [2, 5])


class Broken(Source):
    name = "broken"
    units = {"time": "us"}

    def __init__(self):
        super().__init__()
        self.calls = 0

    def run(self, session, library, specs):
        self.calls += 1
        if self.calls > 1:
            raise Failure("the server never\nlistened")
        return {spec: 1.5 for spec in specs}


def failures_are_rows():
    broken = Broken()
    figure = broken.figure("time")
    row = Row("title", figure, [Goal(1.0, Fake().figure("time", 2))])
    runs = rounds.Rounds(None, [None])
    stderr, sys.stderr = sys.stderr, open(os.devnull, "w", encoding="ascii")
    try:
        runs.run([Row("title", figure)], 5)
    finally:
        sys.stderr.close()
        sys.stderr = stderr
    same(broken.calls, 3)  # one that worked, and two failures in turn
    final = result.build({}, {"rounds": 5, "server core": 1, "client core": 0}, [figure], runs, [row])
    text = "\n".join([*report.lines(final), *report.page(final, [])])
    assert "a round failed: the server never listened" in text and "not measured" in text, text


def rows_are_whole():
    all_rows = rows.all_rows()
    titles = [row.title for row in all_rows]
    same(len(titles), len(set(titles)))
    names = {}
    for figure in (figure for row in all_rows for figure in row.figures()):
        assert names.setdefault(figure.name, figure) is figure, f"two figures are named {figure.name}"
    for row in all_rows:
        for goal in row.goals:
            same({figure.unit for figure in goal.figures} - {row.figure.unit}, set())


def charts_are_well_formed():
    lines = {"SEND": {2: 0.2, 64: 0.3, 1 << 23: 400.0}, "UCX am": {2: 0.4, 1 << 23: 410.0}, "empty": {}}
    text = chart.draw("title", "us", lines, ("SEND",))
    xml.dom.minidom.parseString(text)
    assert "8 MiB" in text and "prefers-color-scheme:dark" in text and "empty" not in text
    same(chart.draw("title", "us", {"SEND": {}}, ()), None)
    placed = chart.labels({"a": 10, "b": 12, "c": 100})
    assert placed["b"] - placed["a"] >= 12 and placed["c"] == 100


CASES = [reads_perftest, refuses_perftest_without_figures, reads_ucx, reads_the_others, reads_connections, rank_test_is_exact, verdicts_are_sound,
         ratios_divide_drift_out, goals_are_judged, floors_that_are_off_are_told, turns_in_which_cores_moved_are_left_out,
         figures_without_a_place_need_no_trip, a_row_is_measured_side_by_side, failures_are_rows, rows_are_whole,
         charts_are_well_formed]


def main():
    failed = 0
    for number, case in enumerate(CASES, 1):
        try:
            case()
            print(f"ok {number} - {case.__name__}")
        except Exception:  # of any kind: the case has failed
            failed += 1
            traceback.print_exc()
            print(f"not ok {number} - {case.__name__}")
    print(f"1..{len(CASES)}")
    return 1 if failed else 0


sys.exit(main())
