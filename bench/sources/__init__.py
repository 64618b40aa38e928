# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""The programs that measure: one file each, with what they are told and how their output is read."""
