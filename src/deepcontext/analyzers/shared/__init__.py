"""Code that several analyzers share. The analyzers themselves lie one folder up."""
