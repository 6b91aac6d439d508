"""Headless Chromium for the tests of pages; they are skipped where it is missing."""

import importlib.util
import shutil
from pathlib import Path

import pytest

ARGUMENTS = (
    "--headless=new",
    "--no-sandbox",  # CI runs as root
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@pytest.fixture(scope="session")
def chromium(tmp_path_factory):
    """A browser that keeps what pages write to its console, and the folder of its downloads."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    program = shutil.which("chromium") or shutil.which("google-chrome")
    driver = shutil.which("chromedriver")
    if program is None or driver is None:
        pytest.skip("chromium and chromedriver (Debian: chromium, chromium-driver) are not here")
    downloads = tmp_path_factory.mktemp("downloads")
    options = webdriver.ChromeOptions()
    options.binary_location = program
    for argument in (*ARGUMENTS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    service = webdriver.ChromeService(driver)
    browser = webdriver.Chrome(options=options, service=service)
    browser.execute_cdp_cmd(
        "Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(downloads)}
    )
    yield browser, downloads
    browser.quit()


@pytest.fixture(scope="session")
def axe():
    """The source of the accessibility checker."""
    found = importlib.util.find_spec("axe_core_python")
    if found is None:
        pytest.skip("axe-core-python, which brings axe.min.js, is not installed")
    return Path(found.origin).with_name("axe.min.js").read_text(encoding="utf-8")
