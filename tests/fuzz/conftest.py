"""The fuzz leg: how many cases there are, and how one of them is run again.

`FUZZ_CASES` cases are dealt among the files by their `SHARE`; a case is one seed.
`FUZZ_SEED` runs that seed alone, in every test: what a red case is run again with.
"""

import pytest

from tests.fuzz.cases import SEED, cases_of


def pytest_generate_tests(metafunc):
    """Give a test that asks for a `seed` as many as its file's share of the cases."""
    if "seed" in metafunc.fixturenames:
        n = cases_of(metafunc.module.SHARE)
        metafunc.parametrize("seed", range(n) if SEED is None else [SEED])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item):
    """Say below a red case how it is run again."""
    report = yield
    seed = getattr(item, "callspec", None) and item.callspec.params.get("seed")
    if report.failed and seed is not None:
        report.sections.append(("Once more", f"make fuzz FUZZ_SEED={seed}"))
    return report
