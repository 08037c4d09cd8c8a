"""Reports as one self-contained HTML page."""

from harness.report.html.document import Item as Item
from harness.report.html.document import page as page
