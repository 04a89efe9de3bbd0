"""What collectors of several frameworks use. Starts nothing by itself."""
