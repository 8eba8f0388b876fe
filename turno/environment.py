"""The `.env` file: read once at the door of each process, never over the environment."""

from pathlib import Path

from dotenv import load_dotenv

PROJECT_DIR = Path(__file__).resolve().parent.parent


def load_env_file() -> None:
    """Load `.env` from the project's folder where it exists; a variable that is set already wins."""
    load_dotenv(PROJECT_DIR / ".env", override=False)
