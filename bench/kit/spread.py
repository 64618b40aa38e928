# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""What a few rounds say: their median, and whether two sets of rounds differ beyond their noise.

The rule is the exact two-sided rank test of Mann and Whitney: of all ways to deal the measured values out to the two sets, the
share in which the sets lie at least as far apart as they do here. It knows nothing of how values are distributed, and one
outlier moves it no more than any other value beyond the rest. Two sets differ when that share is at most LEVEL and their
medians are at least LEAST apart. Five rounds against five reach the level only when every value of one set is beyond every
value of the other (share 2 of 252); with four against four nothing reaches it, and the answer is that there are too few."""

from functools import lru_cache
from math import comb
from statistics import median

LEVEL = 0.01
LEAST = 0.02  # of the median: less is of no interest, even where it is no noise


@lru_cache(maxsize=None)
def ways(m, n, u):
    """In how many orders of m values of one set and n of the other the count of pairs won by the one is u."""
    if u < 0:
        return 0
    if m == 0 or n == 0:
        return 1 if u == 0 else 0
    return ways(m - 1, n, u - n) + ways(m, n - 1, u)


def chance(a, b):
    """The probability to see sets as far apart as these, or further, where there is no difference. A tie counts half a pair,
    rounded to the side of no difference."""
    won = sum((x > y) + 0.5 * (x == y) for x in a for y in b)
    least = min(won, len(a) * len(b) - won)
    tail = sum(ways(len(a), len(b), u) for u in range(int(least + 0.5) + 1))
    return min(1.0, 2 * tail / comb(len(a) + len(b), len(a)))


def can_tell(a, b):
    """Whether sets of these sizes could differ at all by the rule."""
    return 2 / comb(len(a) + len(b), len(a)) <= LEVEL


def ratio(turns, a, b):
    """What a is of b: the median of the ratios of those turns, each {name: value}, in which both were measured. What changed between
    two turns (a machine may have moved its cores) divides out. None: there is no such turn."""
    ratios = [turn[a] / turn[b] for turn in turns if a in turn and turn.get(b)]
    return median(ratios) if ratios else None


def verdict(a, b):
    """'differs', 'same' or 'too few rounds'."""
    if not can_tell(a, b):
        return "too few rounds"
    x, y = median(a), median(b)
    apart = abs(x - y) / max(abs(x), abs(y)) if x or y else 0.0
    return "differs" if apart >= LEAST and chance(a, b) <= LEVEL else "same"
