"""The page in Chromium: console, requests, sorting, search, download, accessibility, widths."""

import contextlib
import io
import json
import time

import pandas as pd
import pytest

import bayescrowd as bc

WIDTHS = {"desktop": 1280, "phone": 390}
HIT = "<script>window.hit=1</script>"


@pytest.fixture(scope="module")
def made():
    """A crowd with gold, truth, flags, groups and hostile names."""
    data = bc.simulate.crowd(
        120, 12, 3, labels_per_task=6, accuracy=0.75, spammers=0.3, activity=0.5, seed=4
    )
    frame = data.annotations.to_frame()
    frame["task"] = ["=HYPERLINK(1)" if t == 0 else f"task {t}" for t in frame["task"]]
    frame["worker"] = [HIT if w == 0 else f"rater {w}" for w in frame["worker"]]
    truth = data.truth.rename({t: f"task {t}" for t in data.truth.index if t})
    return bc.report(frame, gold=truth.iloc[1:20], truth=truth.iloc[20:], most_dropped=2)


@pytest.fixture(scope="module")
def address(made, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "report.html"
    made.save(path)
    return path.as_uri()


@pytest.fixture
def page(chromium, address, request):
    """The page at the width of a desktop or as the test asks for."""
    browser, _ = chromium
    width = getattr(request, "param", WIDTHS["desktop"])
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    show(browser, "light")
    for log in ("browser", "performance"):
        browser.get_log(log)  # what earlier pages wrote
    browser.get(address)
    return browser


def show(browser, scheme, media=""):
    """Let the reader prefer a light or a dark page, or print it."""
    feature = {"name": "prefers-color-scheme", "value": scheme}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media, "features": [feature]})


def both_widths(test):
    return pytest.mark.parametrize("page", WIDTHS.values(), ids=WIDTHS, indirect=True)(test)


def column(page, table, title):
    """The texts of a column of a table that are shown."""
    script = """
        const table = document.getElementById(arguments[0]);
        const heads = Array.from(table.tHead.rows[0].cells, (cell) => cell.textContent.trim());
        const rows = Array.from(table.tBodies[0].rows).filter((row) => !row.hidden);
        return rows.map((row) => row.cells[heads.indexOf(arguments[1])].textContent.trim());
    """
    return page.execute_script(script, table, title)


def head(page, table, title):
    path = f"//table[@id='{table}']//th[button[normalize-space()='{title}']]"
    return page.find_element("xpath", path)


@both_widths
def test_console_is_silent_and_nothing_is_asked_for(page, address):
    assert page.get_log("browser") == []
    messages = [json.loads(entry["message"])["message"] for entry in page.get_log("performance")]
    asked = {
        message["params"]["request"]["url"].partition("#")[0]
        for message in messages
        if message["method"] == "Network.requestWillBeSent"
    }
    assert asked == {address}
    assert page.execute_script("return window.hit === undefined")


@both_widths
def test_page_is_no_wider_than_the_screen(page):
    width = page.execute_script("return document.documentElement.scrollWidth")
    assert width <= page.execute_script("return window.innerWidth")


@both_widths
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(page, axe, scheme):
    show(page, scheme)
    page.execute_script("for (const part of document.querySelectorAll('details')) part.open = true")
    page.execute_script(axe)
    found = page.execute_async_script("axe.run().then(arguments[arguments.length - 1])")
    assert found["passes"]
    problems = {item["id"]: item["nodes"][0]["html"] for item in found["violations"]}
    assert problems == {}


def test_axe_control(page, axe):
    """The scan sees a picture without words and pale text."""
    page.execute_script(
        "document.querySelector('.picture').removeAttribute('aria-label');"
        "document.querySelector('.note').style.color = '#dddddd';"
    )
    page.execute_script(axe)
    found = page.execute_async_script("axe.run().then(arguments[arguments.length - 1])")
    assert {"svg-img-alt", "color-contrast"} <= {item["id"] for item in found["violations"]}


@both_widths
def test_tables_are_sorted_by_keyboard(page, made):
    titles = [c.title for c in made.document.raters.columns]
    values = [row[titles.index("accuracy")].value for row in made.document.raters.rows]
    names = [row[0] for row in made.document.raters.rows]
    by_accuracy = [name for _, name in sorted(zip(values, names, strict=True))]
    header = head(page, "table-raters", "accuracy")
    for order, expected in (("descending", by_accuracy[::-1]), ("ascending", by_accuracy)):
        header.find_element("tag name", "button").send_keys("\n")
        assert header.get_attribute("aria-sort") == order
        assert column(page, "table-raters", "rater") == expected
    other = head(page, "table-raters", "rater")
    other.find_element("tag name", "button").send_keys(" ")
    assert other.get_attribute("aria-sort") == "ascending"
    assert header.get_attribute("aria-sort") is None
    shown = column(page, "table-raters", "rater")
    ordinary = [name for name in shown if name != HIT]
    assert ordinary == [f"rater {w}" for w in range(1, 12)]  # 2 before 10


@both_widths
def test_search_leaves_the_rows_that_match(page):
    field = page.find_element("id", "search-raters")
    field.send_keys("RATER 1")
    assert set(column(page, "table-raters", "rater")) == {"rater 1", "rater 10", "rater 11"}
    status = field.find_element("xpath", "../*[@role='status']")
    assert status.text == "3 of 12 rows"
    field.send_keys("\b" * 7)
    assert len(column(page, "table-raters", "rater")) == 12
    assert status.text == ""


@both_widths
def test_contested_tasks_are_downloaded(page, chromium, made):
    _, downloads = chromium
    target = downloads / "contested-tasks.csv"
    target.unlink(missing_ok=True)
    page.find_element("css selector", "button[data-download]").click()
    # The browser writes the file when it finds the time, under another name until it is whole.
    for _ in range(600):
        with contextlib.suppress(FileNotFoundError):
            if target.stat().st_size:
                break
        time.sleep(0.1)
    text = target.read_bytes().decode()
    table = pd.read_csv(io.StringIO(text))
    contested = made.document.contested.frame
    assert len(table) == len(contested)
    assert table["probability"].tolist() == contested["probability"].tolist()
    unquoted = contested["task"].replace({"=HYPERLINK(1)": "'=HYPERLINK(1)"})
    assert table["task"].tolist() == unquoted.tolist()
    assert "=HYPERLINK(1)" in contested["task"].tolist()


def test_skip_link_comes_first(page):
    page.find_element("tag name", "body").send_keys("\t")
    focused = page.switch_to.active_element
    assert focused.text == "Skip to the report"
    focused.send_keys("\n")
    assert page.switch_to.active_element.get_attribute("id") == "main"


def test_page_can_be_read_without_scripts(chromium, address):
    browser, _ = chromium
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        browser.get(address)
        assert browser.find_element("id", "table-raters").is_displayed()
        assert not browser.find_element("id", "search-raters").is_displayed()
        assert not browser.find_element("css selector", "button[data-download]").is_displayed()
        assert browser.find_elements("css selector", "th button") == []
    finally:
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


def test_printed_page_leaves_out_what_paper_cannot_do(page):
    show(page, "dark", media="print")
    for selector in ("nav", ".search", ".download"):
        assert not page.find_element("css selector", selector).is_displayed()
    assert page.find_element("id", "table-raters").is_displayed()
    is_whole = "(box) => box.scrollHeight <= box.clientHeight + 1"
    boxes = "[...document.querySelectorAll('.scroll')]"
    assert page.execute_script(f"return {boxes}.every({is_whole})")
    colour = page.execute_script("return getComputedStyle(document.body).backgroundColor")
    assert colour == "rgb(255, 255, 255)"
