"""Everything a person sees: command line, reports, pages. Imports down, is imported by nothing."""
