"""GPUs: one file a vendor, and what vendors share. No framework, no vendor's header."""
