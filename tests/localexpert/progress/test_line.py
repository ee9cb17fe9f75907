"""The line of progress: drawn anew in terminals, plain elsewhere, never garbled."""

import io
import warnings

import pytest

from localexpert.progress.line import DrawnLine, PlainLines, format_seconds
from localexpert.progress.progress import show_progress


class Clock:
    """A clock that stands still unless told to go on."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


class Terminal(io.StringIO):
    """A terminal whose screen can be read."""

    def isatty(self):
        return True

    def screen(self):
        """Return the lines that one would see."""
        lines = []
        for written in self.getvalue().split("\n"):
            line = ""
            for piece in written.split("\r"):
                line = piece + line[len(piece) :]
            lines.append(line.rstrip())
        return lines


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.2, "less than 1 s"),
        (1.0, "1 s"),
        (59.4, "59 s"),
        (59.6, "1 min 0 s"),
        (80.0, "1 min 20 s"),
        (3599.7, "1 h 0 min"),
        (7500.0, "2 h 5 min"),
    ],
)
def test_time_is_written_in_two_units(seconds, text):
    assert format_seconds(seconds) == text


def test_warnings_in_between_stay_whole():
    terminal, clock = Terminal(), Clock()
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = lambda message, *_, **__: terminal.write(
            f"beware: {message}\n"
        )
        shown = warnings.showwarning
        with show_progress(1, "fit", stream=terminal, clock=clock) as progress:
            progress.reach(0.3)
            warnings.warn("short", UserWarning, stacklevel=1)
            clock.now = 3.0
            progress.reach(0.6)
        assert warnings.showwarning is shown
    first, last, end = terminal.screen()
    assert first == "beware: short"
    assert last == "fit [################] 100 % done in 3 s"
    assert end == ""


def test_warnings_are_recorded_as_ever():
    with (
        pytest.warns(UserWarning, match="short"),
        show_progress(1, "fit", stream=Terminal()),
    ):
        warnings.warn("short", UserWarning, stacklevel=1)


def test_a_narrow_terminal_and_shorter_texts():
    terminal = Terminal()
    line = DrawnLine(terminal, "fit", 33)
    line.show(0.5, "1 min 20 s left, experts: shared", 0.0)
    assert max(map(len, terminal.screen())) == 33
    line.show(0.6, "soon", 0.01)  # too soon to be drawn
    assert "soon" not in terminal.getvalue()
    line.show(0.6, "soon", 0.2)
    assert terminal.screen() == ["fit [#########.......]  60 % soon"]


def test_notebooks_draw_a_line():
    notebook = type("OutStream", (io.StringIO,), {"__module__": "ipykernel.io"})()
    with show_progress(1, "fit", stream=notebook):
        pass
    assert notebook.getvalue().startswith("\rfit [###")


def test_plain_lines_come_at_fifths():
    stream = io.StringIO()
    line = PlainLines(stream, "fit")
    for percent in range(101):
        line.show(percent / 100.0, "", 0.0)
    line.close(1.0, "done")
    percents = [int(text.split()[1]) for text in stream.getvalue().splitlines()]
    assert percents == [20, 40, 60, 80, 100]
