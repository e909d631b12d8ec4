"""A report on a fitted classifier: one page of HTML, Markdown or JSON."""
