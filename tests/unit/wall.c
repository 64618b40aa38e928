/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A program of one room and those below it: that it links is the test. */
int main(void)
{
	return 0;
}
