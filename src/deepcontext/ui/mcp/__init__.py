"""What a language model's agent may ask about profiles, over the Model Context Protocol."""
