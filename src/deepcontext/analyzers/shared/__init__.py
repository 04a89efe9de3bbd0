"""What several analyzers ask of a profile. No analyzer of its own: those lie one folder up."""
