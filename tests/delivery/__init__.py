"""From a push to production: the workflow, the image, compose files, units, the chart, and the scripts they run."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
