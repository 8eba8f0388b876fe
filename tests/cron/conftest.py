"""Sentences are quoted in English."""

from tests.kit.english import english

__all__ = ["english"]
