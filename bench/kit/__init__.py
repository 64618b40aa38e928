# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
"""What every benchmark needs, whatever it measures."""
