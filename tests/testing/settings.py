"""How Hypothesis looks for failures in these tests."""

from hypothesis import Phase, settings

#: The first failure that is found, for tests that do not ask for the smallest: that takes as long
#: as a hundred others.
FIRST = settings(phases=[Phase.explicit, Phase.generate])
