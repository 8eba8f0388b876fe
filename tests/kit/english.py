"""Sentences in English, for tests that quote them: a conftest that imports the fixture has it around each test."""

import pytest


@pytest.fixture(autouse=True)
def english(settings):
    """The language of whoever asks for no other, in every thread."""
    settings.LANGUAGE_CODE = "en"
