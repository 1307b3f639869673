"""``scipy.spatial``."""

from wengert.scipy.naming import publish

publish(globals(), {})
