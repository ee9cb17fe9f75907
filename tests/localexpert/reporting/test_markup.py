"""HTML from values: escaped without exception, numbers as people write them."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localexpert.reporting import pictures
from localexpert.reporting.columns import show_feature
from localexpert.reporting.markup import (
    Markup,
    contents,
    count,
    details,
    element,
    escape,
    number,
    percent,
    probability,
    section,
    show,
    table,
)
from localexpert.reporting.pictures import label


@given(st.text(), st.text())
def test_any_text_stays_text(read_back, inside, title):
    tags, text = read_back(element("p", inside, title=title))
    assert [tag for tag, _ in tags] == ["p"]
    assert set(tags[0][1]) == {"title"}
    same = [ord(c) for c in inside if c.isprintable() and not 0xD800 <= ord(c) < 0xE000]
    assert [ord(c) for c in text if c.isprintable() and c != "\ufffd"] == [
        c for c in same if c != 0xFFFD
    ]
    element("p", inside).encode("utf-8")


@pytest.fixture(scope="module")
def read_back():
    from html.parser import HTMLParser

    def read(markup):
        tags, texts = [], []
        parser = HTMLParser()
        parser.handle_starttag = lambda tag, found: tags.append((tag, dict(found)))
        parser.handle_data = texts.append
        parser.feed(markup)
        parser.close()
        return tags, "".join(texts)

    return read


def test_markup_is_escaped_once():
    inner = element("b", "a < b & c")
    assert inner == "<b>a &lt; b &amp; c</b>"
    assert escape(inner) is inner
    assert element("i", inner, "<b>") == f"<i>{inner}&lt;b&gt;</i>"
    assert element("img", src="x", alt='"q"') == '<img src="x" alt="&quot;q&quot;">'
    assert escape("a\x00\ud800") == "a\ufffd\ufffd"


def test_attributes_of_python_names():
    made = element("div", class_="scroll", aria_label="of", tabindex=0)
    assert made == '<div class="scroll" aria-label="of" tabindex="0"></div>'


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (1234567.0, "1,234,567"),
        (-0.012344, "\u22120.01234"),
        (12.3456, "12.35"),
        (100.0, "100"),
        (1e-7, "1e\u22127"),
        (2.5e12, "2.5e12"),
        (math.inf, "\u221e"),
        (-math.inf, "\u2212\u221e"),
        (math.nan, "missing"),
    ],
)
def test_numbers(value, text):
    assert show(value) == text


def test_numbers_keep_all_digits_for_machines():
    assert number(1.0 / 3.0) == '<data value="0.3333333333333333">0.3333</data>'
    assert percent(-0.125) == '<data value="-0.125">\u221212.5\u00a0%</data>'
    assert number(None) == number(math.nan) == "&ndash;"


def test_p_values_have_few_digits_and_all_for_machines():
    assert probability(0.0123) == '<data value="0.0123">0.012</data>'
    assert probability(1e-9) == '<data value="1e-09">&lt; 0.0001</data>'


def test_things_are_counted_in_their_number():
    assert [count(n, "row") for n in (0, 1, 2000)] == ["0 rows", "1 row", "2,000 rows"]
    assert count(2, "axis", "axes") == "2 axes"


def test_a_table_has_headings_between_rows_and_parts_long_texts_alone():
    made = table("t", ["a", "b"], [["part"], ["x", "a text of many words"], ["y", "3"]])
    assert '<th scope="rowgroup" colspan="2">part</th>' in made
    assert '<td class="words">a text of many words</td>' in made
    assert "<td>3</td>" in made


def test_contents_lead_to_the_sections():
    parts = [section("Who & what", "x"), section("When", "y")]
    assert [one.anchor for one in parts] == ["who-what", "when"]
    assert '<section id="who-what">' in parts[0]
    assert '<a href="#who-what">Who &amp; what</a>' in contents(parts)


def test_details_are_open_if_asked():
    assert details("a", "b", expanded=False).startswith("<details><summary>a</summary>")
    assert details("a", "b", expanded=True).startswith('<details open="open">')


def test_tables_name_rows_and_columns():
    made = table("Ages", ["Who", "Age"], [["<Ann>", number(3.0)]])
    assert made.startswith('<div class="scroll" role="region" aria-label="Ages"')
    assert '<th scope="col">Age</th>' in made
    assert '<th scope="row">&lt;Ann&gt;</th>' in made
    assert isinstance(made, Markup)


def test_labels_are_short_and_no_formulas():
    assert label("a$b$") == r"a\$b\$"
    assert label("x" * 50) == "x" * 29 + "\u2026"


def test_numbers_on_axes_do_not_run_into_each_other(monkeypatch):
    seen = []
    monkeypatch.setattr(pictures, "_to_address", seen.append)

    def draw(axes):
        axes[0].plot([0.0, 350_000.0], [0.0, 1.0])
        axes[1].plot([0.0, 0.35], [0.0, 1.0])

    pictures.picture(draw, "two lines", "", panels=(1, 2))
    seen[0].draw_without_rendering()
    long, short = (
        [tick.get_text() for tick in ax.get_xticklabels()] for ax in seen[0].axes
    )
    assert "100k" in long
    assert all(len(text) < 6 for text in long + short)
    assert len(long) <= 8  # six and one beyond either end


def test_numbers_of_pictures_are_written_as_those_of_the_text(monkeypatch):
    seen = []
    monkeypatch.setattr(pictures, "_to_address", seen.append)

    def draw(ax):
        ax.plot([0.0, 1.0], [0.0, 2e-5], label="mean 184530.5, 1.5e-07 and 3e+12")
        ax.plot([0.0, 1.0], [0.0, 1e-5], label="0.12345 and 999")
        ax.legend()

    pictures.picture(draw, "two lines", "")
    (ax,) = seen[0].axes
    seen[0].draw_without_rendering()
    told = [text.get_text() for text in ax.get_legend().get_texts()]
    assert told == ["mean 184,530.5, 1.5e\u22127 and 3e12", "0.12345 and 999"]
    assert "1e\u22125" in [tick.get_text() for tick in ax.get_yticklabels()]
    assert ax.yaxis.get_offset_text().get_text() == ""


def test_years_have_no_marks_and_long_numbers_do():
    shown = [show_feature(value) for value in (1987.0, 1921.4, 12345.0, -2000.0)]
    assert shown == ["1987", "1921", "12,345", "\u22122000"]
