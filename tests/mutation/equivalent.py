"""Edits that change nothing that a test should see, and why."""

#: Of a file and the edited lines, as the report shows them: why no test can or should fail.
EQUIVALENT: dict[tuple[str, str], str] = {}
